"""A second version of counts: each wrong answer gets its sentence, and right ones pass, in large batches or small ones."""

from __future__ import annotations

import pytest

from kafkacourse.ch11_spark_pipeline.second_version import LATER_ONLY, ON_TOP_OF_V1, RIGHT, V1
from kafkacourse.datasets import truck_events
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_second_version"


@pytest.fixture
def counted(clean: Cluster) -> Cluster:
    """Trucks sent everything, and version 1 counted it."""
    create(clean, "truck_position", 2, 1)
    for topic in ("alarms_v1", "alarms_v2", "current"):
        create(clean, topic, 1, 1)
    put(clean, "truck_position", [(str(event.driver), event.csv(), -1) for event in truck_events()])
    write(clean, "alarms_v1", V1)
    return clean


def write(cluster: Cluster, topic: str, counts: dict[str, int]) -> None:
    put(cluster, topic, [(driver, str(number), 0) for driver, number in counts.items()])


def switch(cluster: Cluster, topic: str = "alarms_v2") -> None:
    put(cluster, "current", [("alarms", topic, 0)])


def test_the_counts_are_those_of_the_lab() -> None:
    assert sum(RIGHT.values()) == 43 and len(RIGHT) == 5
    assert len({str(counts) for counts in (RIGHT, V1, LATER_ONLY, ON_TOP_OF_V1)}) == 4


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'truck_position' yet" in said and "0 of 6" in said
    create(clean, "truck_position", 1, 1)
    verdict.says("truck_position was given 0 events, not 120", LAB, clean)


def test_written_into_the_first_version(counted: Cluster, verdict: Verdict) -> None:
    verdict.says("The topic alarms_v2 is empty", LAB, counted)
    write(counted, "alarms_v1", RIGHT)
    verdict.says("Version 1 never counts as many", LAB, counted)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (V1, "alarms_v2 has the same counts as version 1"),
        (LATER_ONLY, "alarms_v2 has counts of the last 40 events only"),
        (ON_TOP_OF_V1, "alarms_v2 goes on from the counts of version 1"),
        (RIGHT | {"10": 99}, "alarms_v2 has '99' for driver 10"),
        ({driver: number for driver, number in RIGHT.items() if driver != "11"}, "alarms_v2 has no count for driver 11"),
    ],
)
def test_wrong_counts(counted: Cluster, verdict: Verdict, found: dict[str, int], said: str) -> None:
    write(counted, "alarms_v2", found)
    verdict.says(said, LAB, counted)


def test_no_replay_and_no_switch(counted: Cluster, verdict: Verdict) -> None:
    write(counted, "alarms_v2", LATER_ONLY)
    write(counted, "alarms_v2", RIGHT)
    switch(counted, "alarms_v1")
    _, said = verdict(LAB, counted)
    assert "In alarms_v2 every count is higher than the one before it" in said
    assert "The last record of current says 'alarms_v1'" in said


def test_switched_too_early(counted: Cluster, verdict: Verdict) -> None:
    write(counted, "alarms_v2", LATER_ONLY)
    switch(counted)
    for _ in range(2):
        write(counted, "alarms_v2", RIGHT)
    verdict.says("current named alarms_v2 before that had all counts", LAB, counted)


def test_one_batch_each_time(counted: Cluster, verdict: Verdict) -> None:
    for _ in range(2):
        write(counted, "alarms_v2", RIGHT)
    switch(counted, "alarms_v1")
    switch(counted)
    verdict.passes(LAB, counted)


def test_each_change_and_a_switch_between(counted: Cluster, verdict: Verdict) -> None:
    write(counted, "alarms_v2", LATER_ONLY)
    write(counted, "alarms_v2", RIGHT)
    switch(counted)
    write(counted, "alarms_v2", LATER_ONLY)
    write(counted, "alarms_v2", RIGHT)
    verdict.passes(LAB, counted)
