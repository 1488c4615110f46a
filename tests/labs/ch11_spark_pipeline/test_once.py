"""Events once, late ones too: each wrong answer gets its sentence, and right ones pass, with open windows or without."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from kafkacourse.ch11_spark_pipeline.once import ALL
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_once"
RIGHT = {
    "11@20:00": 1, "21@20:00": 1, "28@20:00": 1, "11@20:01": 1, "21@20:01": 2,
    "21@20:03": 1, "11@20:04": 1, "11@20:05": 1, "21@20:05": 1,
}  # fmt: skip
NAMED = {"b": "Page", "c": None, "d": "Isaacson", "g": "Page", "h": "Isaacson", "k": "Page"}


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """The waves were sent, and nobody read them."""
    create(clean, "truck_events", 1, 1)
    for topic in ("driving_counts", "alarms"):
        create(clean, topic, 1, 1)
    put(clean, "truck_events", [(event.driver, event.id, 0) for event in ALL])
    return clean


def count(cluster: Cluster, counts: dict[str, int]) -> None:
    put(cluster, "driving_counts", [(key, str(number), 0) for key, number in counts.items()])


def alarm(cluster: Cluster, names: dict[str, str | None]) -> None:
    rows = [(key, {"id": key} | ({"last_name": name} if name else {})) for key, name in names.items()]
    put(cluster, "alarms", [(key, json.dumps(row), 0) for key, row in rows])


def stream(**rows: int) -> Any:
    """Stand in for a stream whose operators have so many rows in their states."""
    operators = [{"operatorName": name, "numRowsTotal": number} for name, number in rows.items()]
    return SimpleNamespace(lastProgress={"stateOperators": operators})


BOUNDED = [stream(stateStoreSave=4, dedupe=4), stream(dedupe=4)]


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'truck_events' yet" in said and "0 of 9" in said
    create(clean, "truck_events", 1, 1)
    put(clean, "truck_events", [("11", "a", 0)])
    verdict.says("truck_events was given 1 record, not 14", LAB, clean)


def test_wrong_windows(sent: Cluster, verdict: Verdict) -> None:
    verdict.says("The topic driving_counts is empty", LAB, sent)
    count(sent, {"11@20:00": 1})
    verdict.says("driving_counts has no count for 21@20:00 so far", LAB, sent)
    count(sent, {"11@2017-10-02 20:00:00": 1})
    verdict.says("driving_counts has a record with the key '11@2017-10-02 20:00:00'", LAB, sent)


def test_repeats_counted(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT | {"21@20:00": 2, "11@20:01": 2, "11@20:05": 2})
    verdict.says(
        "driving_counts has 2 for 21@20:00, but one of these events was there already: it was sent again right", LAB, sent
    )


def test_repeats_of_other_batches_counted(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT | {"11@20:01": 2, "11@20:05": 2})
    verdict.says("was there already: it was sent again in another wave", LAB, sent)


def test_no_watermark(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT | {"28@20:02": 1})
    verdict.says("driving_counts has a count for 28@20:02. Its only event came when the watermark had passed it", LAB, sent)


def test_other_counts(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT | {"21@20:01": 1})
    verdict.says("driving_counts has '1' for 21@20:01", LAB, sent)


def test_wrong_alarms(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT)
    alarm(sent, {key: name for key, name in NAMED.items() if key != "c"})
    verdict.says("alarms lacks event c of driver 28. That driver isn't in the table", LAB, sent)
    alarm(sent, {"c": None, "b": "Stone"})
    _, said = verdict(LAB, sent)
    assert "alarms has event b 2 times" in said and "Event b of driver 21 has the last name 'Stone'" in said
    alarm(sent, {"a": "Isaacson"})
    verdict.says("alarms has a record with the key 'a'", LAB, sent)


def test_alarms_that_are_no_json(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT)
    put(sent, "alarms", [(key, str(name), 0) for key, name in NAMED.items()])
    verdict.says("A record of alarms has the value 'Page'. It should be a row as JSON", LAB, sent)


def test_states_that_grow(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT)
    verdict.says("Give check() your answer as queries=", LAB, sent)
    verdict.says("got a report of 1. Start both", LAB, sent, queries=BOUNDED[:1])
    verdict.says("got a report of 1. Start both", LAB, sent, queries=[BOUNDED[0], SimpleNamespace(lastProgress=None)])
    by_id = [BOUNDED[0], stream(dedupe=10)]
    verdict.says("The operator dedupe of a stream has 10 rows in its state", LAB, sent, queries=by_id)
    without_a_window = [stream(stateStoreSave=9, dedupe=4), BOUNDED[1]]
    verdict.says("The operator stateStoreSave of a stream has 9 rows", LAB, sent, queries=without_a_window)


def test_ids_forgotten_later(sent: Cluster, verdict: Verdict) -> None:
    count(sent, RIGHT)
    alarm(sent, NAMED)
    states = [stream(stateStoreSave=4, dedupeWithinWatermark=5), stream(dedupeWithinWatermark=5)]
    verdict.passes(LAB, sent, queries=states)


def test_every_change_of_a_count(sent: Cluster, verdict: Verdict) -> None:
    changes: Counter[str] = Counter()
    for key in sorted(RIGHT) + ["21@20:01"]:
        changes[key] += 1
        count(sent, {key: changes[key]})
    alarm(sent, NAMED)
    verdict.passes(LAB, sent, queries=BOUNDED)


def test_closed_windows_only(sent: Cluster, verdict: Verdict) -> None:
    count(
        sent, {key: number for key, number in RIGHT.items() if key < "11@20:02" or key in ("21@20:00", "21@20:01", "28@20:00")}
    )
    said = "so far. Did the stream process every wave? If it did: which output mode writes a count that may still change?"
    verdict.says(said, LAB, sent)
    count(sent, {"11@20:05": 2, "11@20:04": 1})  # as if it had processed two waves
    verdict.says("no count for 21@20:03 so far. Did the stream process every wave?", LAB, sent)
