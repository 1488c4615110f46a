"""A table put right: each wrong answer gets its sentence, and right ones pass, whichever rows were written again."""

from __future__ import annotations

import pytest

from kafkacourse.ch11_spark_pipeline.data_loss import ANEW, EVENTS, LAST, LEDGER, REMOVED
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_data_loss"


@pytest.fixture
def anew(clean: Cluster) -> Cluster:
    """The topic was created anew, and the stream had read the first 60 events before."""
    create(clean, "truck_position", 1, 1)
    create(clean, "events", 1, 1)
    put(clean, "truck_position", [(None, event, 0) for event in LEDGER[ANEW:]])
    write(clean, LEDGER[: REMOVED.start])
    return clean


def write(cluster: Cluster, events: list[str]) -> None:
    put(cluster, "events", [(event.split(",")[0], event, 0) for event in events])


def test_the_ledger_is_that_of_the_lab() -> None:
    assert len(LEDGER) == len({event.split(",")[0] for event in LEDGER}) == EVENTS


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'truck_position' yet" in said and "0 of 6" in said
    create(clean, "truck_position", 1, 1)
    verdict.says("truck_position lacks 240 of the 240 events", LAB, clean)


def test_only_told_to_overlook_the_loss(anew: Cluster, verdict: Verdict) -> None:
    verdict.says("events lacks 20 rows of 80: of the events that Kafka didn't remove", LAB, anew)
    write(anew, LEDGER[REMOVED.stop :])
    verdict.says("events lacks 20 rows of 20: of the events that were at offsets 60 to 79", LAB, anew)


def test_gone_on_in_the_new_topic_at_the_old_offset(anew: Cluster, verdict: Verdict) -> None:
    write(anew, LEDGER[REMOVED.start : ANEW] + LEDGER[ANEW + 120 :])
    verdict.says("events lacks 120 rows of 220: of the first events of the topic that was created anew", LAB, anew)


def test_begun_at_the_end_after_the_damage(anew: Cluster, verdict: Verdict) -> None:
    write(anew, LEDGER[REMOVED.start : LAST])
    verdict.says("events lacks 20 rows of 20: of the last events", LAB, anew)


def test_rows_that_are_none(anew: Cluster, verdict: Verdict) -> None:
    write(anew, LEDGER[REMOVED.start :])
    put(anew, "events", [(None, LEDGER[0], 0)])
    verdict.says("events has a record with the key '(no key)'", LAB, anew)


def test_each_row_once(anew: Cluster, verdict: Verdict) -> None:
    write(anew, LEDGER[REMOVED.start :])
    verdict.passes(LAB, anew)


def test_everything_again_and_in_another_order(anew: Cluster, verdict: Verdict) -> None:
    write(anew, LEDGER[ANEW + 120 : LAST] + LEDGER[REMOVED])
    write(anew, LEDGER[::-1])
    verdict.passes(LAB, anew)
