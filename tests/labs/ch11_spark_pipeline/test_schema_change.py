"""A field that is added while a stream runs: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import json

import pytest

from kafkacourse.ch11_spark_pipeline.schema_change import DEFAULT, FIRST, NEW, OLD, speed_of
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_schema_change"


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """Trucks sent everything, and the stream had read the first events by V1. The rest of it are dead letters."""
    for topic in ("truck_position", "events", "dead_letters"):
        create(clean, topic, 1, 1)
    put(clean, "truck_position", [(None, f"in Avro {number}", 0) for number in range(OLD.stop)])
    put(clean, "dead_letters", [(None, f"in Avro {number}", 0) for number in NEW])
    write(clean, FIRST)
    return clean


def write(cluster: Cluster, numbers: range, speed: object = None) -> None:
    """Rows with a speed, or with what it gives for the number, or without."""
    speeds = {number: speed(number) if callable(speed) else speed for number in numbers}
    events = {n: {"id": f"event-{n}", "driver": 10} | ({} if s is None else {"speed": s}) for n, s in speeds.items()}
    put(cluster, "events", [(f"event-{number}", json.dumps(event), 0) for number, event in events.items()])


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'truck_position' yet" in said and "0 of 5" in said
    create(clean, "truck_position", 1, 1)
    verdict.says("truck_position was given 0 events, and should have 120", LAB, clean)


def test_dead_letters_left_alone(sent: Cluster, verdict: Verdict) -> None:
    write(sent, OLD, DEFAULT)
    verdict.says("events lacks 40 events of the 40 from 60 on. dead_letters was given 40 records", LAB, sent)


def test_a_stream_that_still_reads_by_the_old_schema(sent: Cluster, verdict: Verdict) -> None:
    write(sent, NEW)
    write(sent, OLD)
    _, said = verdict(LAB, sent)
    assert "event-60 has no speed in events, and was sent with 70. By which schema does the stream read?" in said
    assert "event-100 was sent without a speed, and has none in events" in said


def test_another_default_and_no_stream_at_the_end(sent: Cluster, verdict: Verdict) -> None:
    write(sent, NEW, speed_of)
    verdict.says("events lacks 20 events of the 20 from 100 on", LAB, sent)
    write(sent, OLD, 0)
    verdict.says("event-100 was sent without a speed, and has 0 in events", LAB, sent)


def test_rows_that_are_none(sent: Cluster, verdict: Verdict) -> None:
    put(sent, "events", [("event-0", "Normal", 0)])
    verdict.says("A record of events has the value 'Normal'. It should be an event as JSON", LAB, sent)


def test_dead_letters_sent_again(sent: Cluster, verdict: Verdict) -> None:
    put(sent, "truck_position", [(None, f"in Avro {number}", 0) for number in NEW])
    write(sent, NEW, speed_of)
    write(sent, OLD, DEFAULT)
    verdict.passes(LAB, sent)


def test_everything_read_anew(sent: Cluster, verdict: Verdict) -> None:
    write(sent, FIRST, DEFAULT)
    write(sent, NEW, speed_of)
    write(sent, OLD, DEFAULT)
    verdict.passes(LAB, sent)
