"""Counts by window: each wrong answer gets its sentence, and right ones pass, whether they tell of each change or of the last."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from kafkacourse.ch10_streams.windows import ALARMS
from kafkalab import Cluster, StreamsApp, wait_until
from kafkalab.checks import CheckContext
from support import PATIENCE, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "10_windows"
SOURCE, SINK = "alarms", "alarm_counts"
RIGHT = {"11@0": 3, "21@0": 1, "21@10": 1, "11@10": 2, "21@30": 1}


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """The alarms were sent, and nobody counted them."""
    for topic in (SOURCE, SINK):
        create(clean, topic, 1, 1, retention_ms="-1")
    for _, driver in ALARMS:
        put(clean, SOURCE, [(driver, "Overspeed", 0)])
    return clean


def write(cluster: Cluster, **counts: int) -> None:
    put(cluster, SINK, [(key, str(count), 0) for key, count in counts.items()])


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'alarms' yet" in said and "0 of 5" in said
    create(clean, SOURCE, 1, 1)
    verdict.says("alarms was given 0 records, not 9", LAB, clean)


def test_windows_of_another_kind(sent: Cluster, verdict: Verdict) -> None:
    verdict.says("The topic alarm_counts is empty. Does the application that writes it run?", LAB, sent)
    write(sent, **{"11@0": 2})
    verdict.says("alarm_counts has no count for 21@0 so far", LAB, sent)
    write(sent, **RIGHT, **{"11@5": 2})
    verdict.says("alarm_counts has a record with the key '11@5'", LAB, sent)


def test_no_grace(sent: Cluster, verdict: Verdict) -> None:
    write(sent, **{**RIGHT, "11@0": 2})
    verdict.says("alarm_counts has 2 for 11@0, but one more record of that window came before it was closed", LAB, sent)


def test_no_end_of_grace(sent: Cluster, verdict: Verdict) -> None:
    write(sent, **{**RIGHT, "21@0": 2})
    verdict.says("alarm_counts has 2 for 21@0, but one of these records came when the window was closed", LAB, sent)


def test_other_counts(sent: Cluster, verdict: Verdict) -> None:
    write(sent, **{**RIGHT, "11@10": 7})
    verdict.says("alarm_counts has '7' for 11@10", LAB, sent)


def test_the_last_count_of_each_window_counts(sent: Cluster, verdict: Verdict) -> None:
    write(sent, **{"11@0": 1})
    write(sent, **RIGHT)
    verdict.passes(LAB, sent)


def finally_counted(builder: Any) -> None:
    """Another way than the solution's: a count is written once, when its window closes."""
    from java.time import Duration  # type: ignore[import-not-found]
    from org.apache.kafka.common.serialization import Serdes  # type: ignore[import-not-found]
    from org.apache.kafka.streams import KeyValue  # type: ignore[import-not-found]
    from org.apache.kafka.streams.kstream import Materialized, Suppressed, TimeWindows  # type: ignore[import-not-found]

    windows = TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(5))
    counts = builder.stream("alarms").groupByKey().windowedBy(windows).count(Materialized.with_(Serdes.String(), Serdes.Long()))
    closed = counts.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
    closed.toStream().map(lambda k, n: KeyValue(f"{k.key()}@{k.window().start() // 1000}", str(n))).to("alarm_counts")


def test_an_application_that_waits_until_windows_close(clean: Cluster, verdict: Verdict) -> None:
    for topic in (SOURCE, SINK):
        create(clean, topic, 1, 1, retention_ms="-1")
    producer = Producer(clean.client_config())
    for second, driver in ALARMS:
        producer.produce(SOURCE, "Overspeed", key=driver, timestamp=1000 * second)
        assert producer.flush(PATIENCE) == 0
    with StreamsApp(clean, finally_counted):
        wait_until(lambda: len(CheckContext(clean).values(SINK)) == 4, PATIENCE, "4 counts")
        verdict.passes(LAB, clean)
