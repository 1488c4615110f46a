"""Dead letters that were sent back: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkacourse.ch11_spark_pipeline.replay import CUT, DEAD, EVENTS, UNKNOWN
from kafkalab import Cluster
from support import PATIENCE, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_replay"
LEDGER = {f"event-{number}": 1000 + number for number in range(EVENTS)}
ANSWERS = {"ledger": LEDGER, "rows": EVENTS, "dead": sorted(DEAD)}
UNKNOWN_VALUES = [b"\0\0\0\0\x63 unknown %d" % number for number in range(UNKNOWN)]
CUT_VALUES = [b"\0\0\0\0\x01 cut off %d" % number for number in range(CUT)]


def send(cluster: Cluster, values: list[bytes], replays: int = 0, **more: bytes) -> None:
    """Send values as trucks do, or as a replay does."""
    producer = Producer(cluster.client_config())
    for value in values:
        headers = {"trace": value} | ({"dead.replays": b"%d" % replays} if replays else {}) | more
        producer.produce("truck_position", value, "truck", headers=headers)
    assert producer.flush(PATIENCE) == 0


def commit(cluster: Cluster, offset: int) -> None:
    """Commit a position in the letters, as a replay may do."""
    consumer = Consumer(cluster.client_config(group_id="replay"))
    consumer.commit(offsets=[TopicPartition("dead_letters", 0, offset)], asynchronous=False)
    consumer.close()


def fill(cluster: Cluster, ledger: dict[str, int]) -> None:
    put(cluster, "events", [(name, json.dumps({"time": time}), 0) for name, time in ledger.items()])


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """Trucks sent all records, and nobody sent one back."""
    for topic in ("truck_position", "events", "dead_letters"):
        create(clean, topic, 1, 1)
    send(clean, [b"event %d" % number for number in range(EVENTS)] + UNKNOWN_VALUES + CUT_VALUES)
    put(clean, "dead_letters", [("truck", f"letter {number}", 0) for number in range(8)])
    return clean


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "truck_position", 1, 1)
    _, said = verdict(LAB, clean, ledger={}, rows=None, dead=None)
    assert "0 of 6" in said


def test_right_answers(sent: Cluster, verdict: Verdict) -> None:
    for replays in (1, 2, 3):
        send(sent, UNKNOWN_VALUES, replays)
    send(sent, [*CUT_VALUES, b"event 140"], 1)
    fill(sent, LEDGER)
    fill(sent, {"event-140": LEDGER["event-140"]})  # sent back twice, which does no harm
    verdict.says("No group has committed an offset in dead_letters beyond its beginning", LAB, sent, **ANSWERS)
    commit(sent, 4)
    verdict.passes(LAB, sent, **ANSWERS)
    verdict.passes(LAB, sent, **ANSWERS | {"rows": str(EVENTS), "dead": {trace.encode() for trace in DEAD}})


def test_a_position_in_a_topic_of_its_own(sent: Cluster, verdict: Verdict) -> None:
    create(sent, "positions", 1, 1)
    verdict.says("A variable is gone with the kernel", LAB, sent, **ANSWERS)
    put(sent, "positions", [("schema", "43", 0)])
    _, said = verdict(LAB, sent, **ANSWERS)
    assert "A variable is gone" not in said


def test_wrong_headers(sent: Cluster, verdict: Verdict) -> None:
    verdict.says("and none that was sent back", LAB, sent, **ANSWERS)
    send(sent, UNKNOWN_VALUES, 1)
    send(sent, UNKNOWN_VALUES, 1)
    verdict.says("was sent back 2 times, and its header dead.replays says 1. Was one letter", LAB, sent, **ANSWERS)
    send(sent, [b"event 141"])
    verdict.says("was sent back, and has no number in the header dead.replays", LAB, sent, **ANSWERS)


def test_headers_of_the_letter(sent: Cluster, verdict: Verdict) -> None:
    send(sent, [b"event 141"], 1, **{"dead.reason": b"clock"})
    verdict.says("has the letter's header 'dead.reason'", LAB, sent, **ANSWERS)


def test_headers_that_are_lost(sent: Cluster, verdict: Verdict) -> None:
    put(sent, "truck_position", [("truck", "event 141", 0)])
    verdict.says("lacks its own key or its own header `trace`", LAB, sent, **ANSWERS)


def test_a_record_that_goes_round_and_round(sent: Cluster, verdict: Verdict) -> None:
    send(sent, UNKNOWN_VALUES, 1)
    verdict.says("A record of schema 99 was sent back 1 time. It should be tried again", LAB, sent, **ANSWERS)
    for replays in (2, 3, 4):
        send(sent, UNKNOWN_VALUES, replays)
    verdict.says("A record of schema 99 was sent back 4 times", LAB, sent, **ANSWERS)


def test_wrong_tables(sent: Cluster, verdict: Verdict) -> None:
    fill(sent, dict(list(LEDGER.items())[:140]))
    verdict.says("events lacks event-140, which came from the truck with the fast clock", LAB, sent, **ANSWERS)
    fill(sent, LEDGER | {"event-150": 3_601_150})
    verdict.says("event-150 has the time 3601150 in events, and 1150 in the ledger", LAB, sent, **ANSWERS)


def test_wrong_sums(sent: Cluster, verdict: Verdict) -> None:
    fill(sent, LEDGER)
    for replays in (1, 2):
        send(sent, UNKNOWN_VALUES, replays)
    verdict.says("A value that was cut off was sent back 0 times", LAB, sent, **ANSWERS)
    send(sent, CUT_VALUES, 1)
    verdict.says("`rows` is 168. How many different keys", LAB, sent, **ANSWERS | {"rows": 168})
    verdict.says("`dead` should be a list, not a whole number", LAB, sent, **ANSWERS | {"dead": 8})
    some = sorted(DEAD)[1:]
    verdict.says("`dead` has 7 traces, and lacks 'trace-cut-0'", LAB, sent, **ANSWERS | {"dead": some})
    verdict.says("'trace-cut-1' is in `dead` 2 times", LAB, sent, **ANSWERS | {"dead": [*some, some[0]]})
    verdict.says("'trace-event-140' is in `dead` 1 time", LAB, sent, **ANSWERS | {"dead": [*DEAD, "trace-event-140"]})
