"""Counts by depot: each wrong answer gets its sentence, and right ones pass, whichever join made them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacourse.datasets import truck_events
from kafkalab import Cluster, StreamsApp, wait_until
from kafkalab.checks import CheckContext
from support import PATIENCE, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "10_topology"
CHANGELOG = "any-counts-changelog"
ALARMS = [(str(event.driver), event.event) for event in truck_events() if event.event != "Normal"]
DEPOTS = {"10": "Chicago", "11": "Chicago", "12": "Memphis", "21": "Tulsa"}
RIGHT = {"Chicago": 23, "Memphis": 8, "Tulsa": 7, "unknown": 5}


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """Alarms and depots were sent, and nobody counted them."""
    for topic in ("in-1", "in-2", "out-1"):
        create(clean, topic, 1, 1)
    put(clean, "in-2", [(driver, depot, -1) for driver, depot in DEPOTS.items()])
    put(clean, "in-1", [(driver, alarm, -1) for driver, alarm in ALARMS])
    return clean


def write(cluster: Cluster, topic: str, counts: dict[str, int]) -> None:
    put(cluster, topic, [(key, str(count), -1) for key, count in counts.items()])


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'in-1' yet" in said and "0 of 5" in said
    for topic in ("in-1", "in-2"):
        create(clean, topic, 1, 1)
    verdict.says("in-1 was given 0 records, not 43", LAB, clean)


def test_an_inner_join(sent: Cluster, verdict: Verdict) -> None:
    verdict.says("The topic out-1 is empty. Does the application that writes it run?", LAB, sent)
    write(sent, "out-1", {key: count for key, count in RIGHT.items() if key != "unknown"})
    verdict.says("out-1 has no count for unknown, but 5 alarms of in-1 came from drivers that aren't in in-2", LAB, sent)


def test_a_count_of_something_else(sent: Cluster, verdict: Verdict) -> None:
    write(sent, "out-1", {**RIGHT, "Chicago": 2})  # of drivers
    verdict.says("out-1 ends with '2' for Chicago", LAB, sent)
    write(sent, "out-1", {**RIGHT, "Overspeed": 9})
    verdict.says("out-1 has a record with the key 'Overspeed'", LAB, sent)


def test_one_that_has_not_read_all(sent: Cluster, verdict: Verdict) -> None:
    write(sent, "out-1", {"Chicago": 23, "unknown": 5})
    verdict.says("out-1 has no count for Memphis so far", LAB, sent)


def test_a_store_of_another_name_and_one_that_holds_something_else(sent: Cluster, verdict: Verdict) -> None:
    write(sent, "out-1", RIGHT)
    verdict.says("No topic is the changelog of a store `counts`", LAB, sent)
    create(sent, CHANGELOG, 1, 1)
    write(sent, CHANGELOG, {"Overspeed": 9})
    verdict.says(f"{CHANGELOG} lacks some of the counts", LAB, sent)
    write(sent, CHANGELOG, RIGHT)
    verdict.passes(LAB, sent)


def with_a_global_table(builder: Any) -> None:
    """Another way than the solution's: each instance has all depots, and the key is set before the records are grouped."""
    from org.apache.kafka.streams.kstream import Materialized  # type: ignore[import-not-found]

    depots = builder.globalTable("in-2")
    alarms = builder.stream("in-1").leftJoin(depots, lambda driver, alarm: driver, lambda alarm, depot: depot or "unknown")
    counts = alarms.selectKey(lambda driver, depot: depot).groupByKey().count(Materialized.as_("counts"))
    counts.mapValues(lambda count: str(count)).toStream().to("out-1")


def test_an_application_with_a_global_table(sent: Cluster, verdict: Verdict) -> None:
    with StreamsApp(sent, with_a_global_table):
        right = {key: str(count) for key, count in RIGHT.items()}

        def table() -> dict[str, str]:
            records = CheckContext(sent).records("out-1")
            return {(r.key() or b"").decode(): (r.value() or b"").decode() for r in records}

        wait_until(lambda: table() == right, PATIENCE, "the counts", last_seen=table)
        verdict.passes(LAB, sent)
