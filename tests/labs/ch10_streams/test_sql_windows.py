"""Windows and a join of two streams, by Spark and by a topology: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkacourse.ch10_streams.sql_windows import (
    ANSWERED_IN_SQL,
    ANSWERED_IN_STREAMS,
    AT_ONCE,
    CALLS,
    CALLS_TOPIC,
    COUNTS_IN_SQL,
    COUNTS_IN_STREAMS,
    SOURCE,
)
from kafkacourse.ch10_streams.windows import ALARMS
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "10_sql_windows"
RIGHT = {"11@0": 3, "21@0": 1, "21@10": 1, "11@10": 2, "21@30": 1}
EVERYTHING = {**RIGHT, "21@0": 2}
PAIRS = [("11", "3-6"), ("21", "12-15"), ("21", "9-15"), ("11", "16-22"), ("11", "18-22")]


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """Alarms and calls were sent, and nobody asked anything."""
    for topic in (SOURCE, CALLS_TOPIC, AT_ONCE, COUNTS_IN_SQL, COUNTS_IN_STREAMS, ANSWERED_IN_SQL, ANSWERED_IN_STREAMS):
        create(clean, topic, 1, 1)
    for topic, records in ((SOURCE, ALARMS), (CALLS_TOPIC, CALLS)):
        put(clean, topic, [(driver, str(second), 0) for second, driver in records])
    return clean


def write(cluster: Cluster, topic: str, counts: Mapping[str, int]) -> None:
    put(cluster, topic, [(key, str(count), 0) for key, count in counts.items()])


def answer(cluster: Cluster, topic: str, pairs: list[tuple[str, str]]) -> None:
    put(cluster, topic, [(driver, pair, 0) for driver, pair in pairs])


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'alarms' yet" in said and "0 of 6" in said
    create(clean, SOURCE, 1, 1)
    verdict.says("alarms was given 0 records, not 9", LAB, clean)


def test_alarms_in_other_batches(sent: Cluster, verdict: Verdict) -> None:
    write(sent, AT_ONCE, RIGHT)
    verdict.says("counts_at_once has 1 for 21@0. One alarm was dropped.", LAB, sent)
    write(sent, COUNTS_IN_SQL, EVERYTHING)
    verdict.says("counts_in_sql has 2 for 21@0. The alarm of second 9 is in it. Which alarms had", LAB, sent)
    write(sent, COUNTS_IN_STREAMS, EVERYTHING)
    verdict.says("counts_in_streams has 2 for 21@0. The alarm of second 9 is in it. How long does your window wait", LAB, sent)


def test_windows_of_another_kind_or_not_all_of_them(sent: Cluster, verdict: Verdict) -> None:
    write(sent, COUNTS_IN_SQL, {**RIGHT, "11@5": 2})
    verdict.says("counts_in_sql has a record with the key '11@5'", LAB, sent)
    write(sent, COUNTS_IN_STREAMS, {"11@0": 3})
    verdict.says("counts_in_streams has no count for 21@0 so far. Is each change of a count written", LAB, sent)
    write(sent, AT_ONCE, {**EVERYTHING, "11@10": 7})
    verdict.says("counts_at_once has '7' for 11@10", LAB, sent)


def test_calls_before_the_alarm_or_to_another_driver(sent: Cluster, verdict: Verdict) -> None:
    answer(sent, ANSWERED_IN_SQL, [*PAIRS, ("11", "7-6")])
    verdict.says("answered_in_sql has '7-6' for driver '11'", LAB, sent)
    answer(sent, ANSWERED_IN_STREAMS, [("11", "9-15")])
    verdict.says("answered_in_streams has '9-15' for driver '11'. A row has the driver as its key", LAB, sent)


def test_pairs_that_are_missing_or_there_twice(sent: Cluster, verdict: Verdict) -> None:
    answer(sent, ANSWERED_IN_SQL, PAIRS[:3])
    verdict.says("answered_in_sql lacks 2 of 5 pairs, for example an alarm of driver 11", LAB, sent)
    answer(sent, ANSWERED_IN_STREAMS, [*PAIRS, PAIRS[2]])
    verdict.says("answered_in_streams has '9-15' of driver 21 more than once", LAB, sent)


def finish(cluster: Cluster, pairs: list[tuple[str, str]]) -> None:
    """Everything but the counts of Spark and of the topology."""
    write(cluster, AT_ONCE, EVERYTHING)
    for topic in (ANSWERED_IN_SQL, ANSWERED_IN_STREAMS):
        answer(cluster, topic, pairs)


def test_each_change_of_a_count(sent: Cluster, verdict: Verdict) -> None:
    finish(sent, PAIRS)
    for topic in (COUNTS_IN_SQL, COUNTS_IN_STREAMS):
        write(sent, topic, {"11@0": 1, "11@10": 1})
        write(sent, topic, RIGHT)
    verdict.passes(LAB, sent)


def test_the_last_counts_alone_and_pairs_in_another_order(sent: Cluster, verdict: Verdict) -> None:
    finish(sent, PAIRS[::-1])
    for topic in (COUNTS_IN_SQL, COUNTS_IN_STREAMS):
        write(sent, topic, dict(reversed(RIGHT.items())))
    verdict.passes(LAB, sent)
