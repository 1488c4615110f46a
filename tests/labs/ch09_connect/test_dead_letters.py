"""Dead letters: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect_support import PLAIN_JSON, SMT, TEXT, ask, put, wait_until_failed
from kafkalab import Cluster, ConnectCluster, wait_until
from support import PATIENCE, Verdict, create
from support import put as send

pytestmark = pytest.mark.cluster

LAB = "09_dead_letters"
RIGHT = {2: "VALUE_CONVERTER", 5: "TRANSFORMATION"}
ERRORS = "errors.deadletterqueue"
TOLERANT = {"errors.tolerance": "all"}
KEPT = {**TOLERANT, f"{ERRORS}.topic.name": "orders-dead", f"{ERRORS}.topic.replication.factor": 1}
TOLD = {**KEPT, f"{ERRORS}.context.headers.enable": True}
MASK = {"transforms": "mask", "transforms.mask.type": f"{SMT}.MaskField$Value", "transforms.mask.fields": "card"}


@pytest.fixture
def orders(single: Cluster, connect: ConnectCluster, tmp_path: Path) -> dict[str, object]:
    """Eight records, and the settings of a sink for them."""
    create(single, "orders", 1, 1)
    values = [json.dumps({"id": f"order-{n}", "card": f"4000-12{n}", "francs": 10 + n}) for n in range(8)]
    values[2], values[5] = "oops", "42"
    send(single, "orders", [(None, value, 0) for value in values])
    file = str(tmp_path / "orders.txt")
    return {"connector.class": "FileStreamSink", "file": file, "topics": "orders", **TEXT, **PLAIN_JSON}


def written(connect: ConnectCluster, config: dict[str, object]) -> None:
    """Make the sink so, and wait until it has written the last order."""
    put(connect, "orders-out", config)
    file = Path(str(config["file"]))
    wait_until(lambda: file.exists() and "order-7" in file.read_text(), PATIENCE, "order-7", last_seen=connect.states)


def again(connect: ConnectCluster) -> None:
    """Let the sink begin at the beginning."""
    ask(connect, "PUT", "/connectors/orders-out/stop")
    ask(connect, "DELETE", "/connectors/orders-out/offsets")
    ask(connect, "PUT", "/connectors/orders-out/resume")


def test_a_sink_that_stops(single: Cluster, connect: ConnectCluster, orders: dict[str, object], verdict: Verdict) -> None:
    verdict.says("There is no connector 'orders-out' yet", LAB, single, connect=connect)
    put(connect, "orders-out", orders | MASK)
    wait_until_failed(connect, "orders-out")
    verdict.says("The state of task 0 of orders-out is FAILED", LAB, single, connect=connect)


def test_nothing_is_kept_then_too_little_then_all(
    single: Cluster, connect: ConnectCluster, orders: dict[str, object], verdict: Verdict
) -> None:
    written(connect, orders | MASK | TOLERANT)
    verdict.says("tolerates errors and has no dead-letter topic", LAB, single, connect=connect)
    file = Path(str(orders["file"]))
    file.unlink()
    ask(connect, "DELETE", "/connectors/orders-out")
    single.wait_for(
        lambda v: not v.silent and ("connect-orders-out" not in v.groups or not v.groups["connect-orders-out"].members),
        "it to end",
        groups=True,
    )
    put(connect, "orders-out", orders | MASK | KEPT)
    connect.wait_until_running("orders-out")
    again(connect)
    answers = {"connect": connect, "causes": RIGHT}
    wait_until(lambda: "says where it came from" in verdict(LAB, single, **answers)[1], PATIENCE, "letters without headers")
    put(connect, "orders-out", orders | MASK | TOLD)
    connect.wait_until_running("orders-out")
    again(connect)
    wait_until(
        lambda: verdict(LAB, single, **answers)[0],
        PATIENCE,
        "the check to pass",
        last_seen=lambda: verdict(LAB, single, **answers),
    )


def test_the_answer_is_looked_at(single: Cluster, connect: ConnectCluster, orders: dict[str, object], verdict: Verdict) -> None:
    written(connect, orders | MASK | TOLD)
    wait_until(lambda: verdict(LAB, single, connect=connect, causes=RIGHT)[0], PATIENCE, "the check to pass")
    verdict.passes(LAB, single, connect=connect, causes={5: "TRANSFORMATION", 2: "VALUE_CONVERTER"})
    for causes, sentence in [
        ({0: "VALUE_CONVERTER", 1: "TRANSFORMATION"}, "`causes` has the offset 0. That isn't where a letter was in orders"),
        ({2: "VALUE_CONVERTER"}, "one record that failed is missing"),
        (RIGHT | {5: "VALUE_CONVERTER"}, "`causes` says 'VALUE_CONVERTER' for offset 5"),
    ]:
        verdict.says(sentence, LAB, single, connect=connect, causes=causes)


def test_another_topic_for_the_letters_will_do_but_a_card_must_not_be_seen(
    single: Cluster, connect: ConnectCluster, orders: dict[str, object], verdict: Verdict
) -> None:
    other = TOLD | {f"{ERRORS}.topic.name": "letters"}
    written(connect, orders | MASK | other)
    wait_until(lambda: verdict(LAB, single, connect=connect, causes=RIGHT)[0], PATIENCE, "the check to pass")
    put(connect, "orders-out", orders | other)
    again(connect)
    wait_until(lambda: "4000-12" in Path(str(orders["file"])).read_text(), PATIENCE, "a card", last_seen=connect.states)
    verdict.says("A line of the file shows a card's number", LAB, single, connect=connect, causes=RIGHT)
