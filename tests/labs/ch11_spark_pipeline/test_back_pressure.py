"""A burst in small batches: each wrong answer gets its sentence, and right ones pass, with a large limit or a small one."""

from __future__ import annotations

import pytest

from kafkacourse.ch11_spark_pipeline.back_pressure import EVENTS
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_back_pressure"
SENT = [f"event-{number}" for number in range(EVENTS)]


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """Both bursts were sent, and nobody read them."""
    create(clean, "truck_position", 4, 1)
    create(clean, "processed", 1, 1)
    put(clean, "truck_position", [(None, event, number % 4) for number, event in enumerate(SENT)])
    return clean


def process(cluster: Cluster, limit: int, events: list[str] = SENT, first: int = 0) -> None:
    put(cluster, "processed", [(event, str(first + place // limit), 0) for place, event in enumerate(events)])


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'truck_position' yet" in said and "0 of 5" in said


def test_one_burst_only_and_one_too_many(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "truck_position", 1, 1)
    put(clean, "truck_position", [(None, event, 0) for event in SENT[: EVENTS // 2]])
    verdict.says("truck_position has 2200 events, not 4400. Each part of the lab sends 200 events", LAB, clean)
    put(clean, "truck_position", [(None, event, 0) for event in SENT])
    verdict.says("truck_position has 6600 events, not 4400. Run each cell with drive() once", LAB, clean)


def test_no_limit(sent: Cluster, verdict: Verdict) -> None:
    process(sent, 2200)
    verdict.says("Batch 0 of the stream to processed took 2200 events at once", LAB, sent)


def test_a_limit_that_never_lets_it_catch_up(sent: Cluster, verdict: Verdict) -> None:
    process(sent, 100, SENT[:3000])
    verdict.says("processed lacks 1400 events of 4400", LAB, sent)
    process(sent, 100, SENT[3000:], 30)
    verdict.says("The largest batch took 100 events, but 200 come at a time", LAB, sent)


def test_begun_at_the_end_of_the_topic(sent: Cluster, verdict: Verdict) -> None:
    process(sent, 400, SENT[2200:])
    verdict.says(
        "processed lacks 2200 events of 4400: one is at offset 0 of partition 0. Where did the stream begin", LAB, sent
    )


def test_a_lost_checkpoint_and_strange_keys(sent: Cluster, verdict: Verdict) -> None:
    for _ in range(2):
        process(sent, 300)
    verdict.says("processed has the event 'event-0' 2 times", LAB, sent)
    process(sent, 300, ["7"])
    verdict.says("processed has a record with the key '7'", LAB, sent)


def test_a_limit_of_400(sent: Cluster, verdict: Verdict) -> None:
    process(sent, 400)
    verdict.passes(LAB, sent)


def test_a_smaller_limit_and_a_restart(sent: Cluster, verdict: Verdict) -> None:
    process(sent, 250, SENT[:2200])
    process(sent, 201, SENT[2200:], 9)
    verdict.passes(LAB, sent)
