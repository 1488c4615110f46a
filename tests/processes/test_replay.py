"""Dead letters that are sent back: repaired ones count once, and the others stop after some times."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from kafkalab import Cluster, spark_session
from kafkalab.spark import kafka_options
from pipeline_support import SCHEMAS, framed
from support import PATIENCE, create
from truck_pipeline import Event, Pipeline, Settings, answers
from truck_pipeline.replay import replay

pytestmark = pytest.mark.cluster

EVENT = Event(1_506_974_405_000, 103, 21, 1927624662, "Overspeed", 41.7, -90.6, "a")
BAD = b"\0\0\0\0\x08event"  # nobody ever registers this schema


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    yield spark_session(cluster)
    spark_session().stop()


def letters(spark: SparkSession, settings: Settings) -> list[tuple[bytes, dict[str, str]]]:
    """Values and headers, in the order of their offsets."""
    source = spark.read.format("kafka").options(**settings.source(settings.dead_letters), includeHeaders=True)
    rows = source.load().orderBy("offset").collect()
    return [(row.value, {header.key: header.value.decode() for header in row.headers}) for row in rows]


def test_letters_are_sent_back(
    spark: SparkSession, cluster: Cluster, postgresql_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {7: SCHEMAS[7]}
    monkeypatch.setattr("truck_pipeline.writers.Writers.ask", lambda *_: dict(known))
    schema = f"replay_{uuid.uuid4().hex[:8]}"
    topics = {name: f"{name}_{schema}" for name in ("positions", "drivers", "dangerous", "dead_letters")}
    settings = Settings(kafka_options(cluster), "none", postgresql_server, str(tmp_path), schema, trigger="0 seconds", **topics)
    for topic in topics.values():
        create(cluster, topic, 1)
    producer = Producer(cluster.client_config())
    fresh = [EVENT._replace(correlation=name) for name in "bc"]
    values = [framed(EVENT), *(framed(event, 9, driverAge=33) for event in fresh), b"\0\0\0\0\x09cut off", b"not an event", BAD]
    for value in values:
        producer.produce(settings.positions, value, "21", headers=[("trace", b"1"), ("dead.reason", b"forged")])
    assert producer.flush(PATIENCE) == 0
    pipeline = Pipeline(spark, settings).start()
    pipeline.catch_up()
    first = letters(spark, settings)
    assert sorted(letter["dead.reason"] for _, letter in first) == ["header"] + ["schema"] * 4

    known[9] = SCHEMAS[9]
    sent = []
    for _ in range(5):
        sent.append(replay(spark, settings, ["schema"]))
        pipeline.catch_up()
    # Two become events, one becomes a letter of another reason, and the last one stays what it is.
    assert sent == [4, 1, 1, 0, 0]
    assert pipeline.tables.answers() == answers([EVENT, *fresh], [])
    later = letters(spark, settings)[len(first) :]
    found = [(value, letter["dead.reason"], letter["dead.replays"], letter["trace"]) for value, letter in later]
    assert sorted(found) == [(BAD, "schema", times, "1") for times in "123"] + [(values[3], "value", "1", "1")]
    assert replay(spark, settings, ["value", "schema"]) == 1  # sent back once before
    pipeline.catch_up()
    assert letters(spark, settings)[-1][1]["dead.replays"] == "2"
    with pytest.raises(ValueError, match="no letter has the reason hunger"):
        replay(spark, settings, ["hunger"])
    pipeline.stop()
    pipeline.tables.drop()
