"""The lake: each record is in it once, whatever came late, twice or malformed, and with the stream's tables nothing vanishes."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import Row, SparkSession

from kafkalab import Cluster, spark_session
from kafkalab.spark import kafka_options
from pipeline_support import SCHEMAS, framed, send
from support import PATIENCE, create, delete
from truck_pipeline import Event, Lake, Pipeline, Settings, Trucks, answers, send_drivers
from truck_pipeline.checkpoint import CheckpointRefused
from truck_pipeline.lake import LakeGone
from truck_pipeline.reconcile import reconcile

pytestmark = pytest.mark.cluster

TABLES = ("bronze", "silver", "quarantine", "gold")
EVENT = Event(1_506_974_405_000, 103, 21, 1927624662, "Overspeed", 41.7, -90.6, "a")


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    yield spark_session(cluster, delta=True)
    spark_session().stop()


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """What the registry knows; more may come."""
    known = dict(SCHEMAS)
    monkeypatch.setattr("truck_pipeline.writers.Writers.ask", lambda *_: known)
    return known


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path) -> Settings:
    """With a topic of its own."""
    settings = Settings(kafka_options(cluster), "none", "", str(tmp_path / "point"), positions=f"lake_{uuid.uuid4().hex[:8]}")
    create(cluster, settings.positions, 2)
    return settings


def at(minute: int, name: str) -> bytes:
    return framed(EVENT._replace(timestamp=EVENT.timestamp + minute * 60_000, correlation=name))


def counts(lake: Lake) -> dict[tuple[int, int], tuple[int, int]]:
    return {(int(row.starts.timestamp()), row.driverId): (row.events, row.dangerous) for row in lake.read("gold").collect()}


def content(lake: Lake, table: str) -> Counter[Any]:
    return Counter(map(str, lake.read(table).collect()))


def test_the_lake_survives_the_loss_of_its_folder(
    spark: SparkSession, cluster: Cluster, settings: Settings, schemas: dict[int, str], tmp_path: Path
) -> None:
    folder, away = tmp_path / "lake", tmp_path / "away"
    reports = Trucks(malformed=0.05).reports(300)
    lake = Lake(spark, settings, str(folder))
    with pytest.raises(LakeGone, match="no table bronze in"):
        lake.fill()
    lake.create()
    send(cluster, settings, reports[:200])
    lake.fill()
    send(cluster, settings, reports[200:])
    folder.rename(away)
    for attempt in (lake.fill, lake.create):
        with pytest.raises(LakeGone, match=f"no table bronze in {folder}"):
            attempt()
    assert not folder.exists()  # it isn't made anew and empty
    away.rename(folder)
    lake.create()  # changes nothing
    lake.fill()
    wanted = answers(report.event for report in reports if report.event)
    assert counts(lake) == wanted.counts
    assert lake.read("bronze").count() == len(reports) and lake.read("silver").count() == wanted.events
    assert lake.read("quarantine").count() == sum(report.event is None for report in reports)
    assert 0 < lake.read("silver", version=1).count() < wanted.events  # as it was after the first call
    with pytest.raises(CheckpointRefused, match="doesn't know how far bronze is, but that table in .* isn't empty"):
        Lake(spark, replace(settings, checkpoint=str(tmp_path / "lost")), str(folder)).fill()
    delete(cluster, settings.positions)
    create(cluster, settings.positions, 2)
    with pytest.raises(CheckpointRefused, match="belongs to a topic that was deleted"):
        lake.fill()
    assert lake.read("silver").count() == wanted.events


def test_what_comes_late_twice_or_malformed(
    spark: SparkSession, cluster: Cluster, settings: Settings, schemas: dict[int, str], tmp_path: Path
) -> None:
    lake = Lake(spark, settings, str(tmp_path / "lake"))
    lake.create()
    day = 1440
    for values in (
        [at(0, "a"), at(2 * day, "b"), at(2 * day, "b"), b"not an event"],
        [at(0, "late"), at(0, "a"), at(2 * day, "b"), at(2 * day, "c"), b"not an event"],
    ):
        producer = Producer(cluster.client_config())
        for value in values:
            producer.produce(settings.positions, value, "key", 0, headers=[("trace", b"1")])
        assert producer.flush(PATIENCE) == 0
        lake.fill()
    minutes = {at // 60 - EVENT.timestamp // 60_000: found for (at, _), found in counts(lake).items()}
    assert minutes == {0: (2, 2), 2 * day: (2, 2)}
    first = datetime.fromtimestamp(EVENT.timestamp / 1000, UTC).date()
    days = {row.correlationId: row.day for row in lake.read("silver").collect()}
    assert days == {"a": first, "late": first, "b": first + timedelta(2), "c": first + timedelta(2)}
    dead = lake.read("quarantine").orderBy("offset").collect()
    assert [(row.reason, row.key, row.value, row.offset) for row in dead] == [
        ("header", b"key", b"not an event", 3), ("header", b"key", b"not an event", 8)
    ]  # fmt: skip
    assert dead[0].headers == [Row(key="trace", value=b"1")] and dead[0].day == dead[0].timestamp.date()
    before = {table: content(lake, table) for table in TABLES}
    # As if Spark had died when it had stored the last batch, and before it could note that.
    for stream in ("bronze", "silver"):
        commits = tmp_path / "point" / stream / "commits"
        last = max(int(commit.name) for commit in commits.glob("[0-9]*"))
        for file in (f"{last}", f".{last}.crc"):
            (commits / file).unlink(missing_ok=True)
    lake.fill()
    assert {table: content(lake, table) for table in TABLES} == before


def test_a_back_fill(
    spark: SparkSession, cluster: Cluster, settings: Settings, schemas: dict[int, str], tmp_path: Path
) -> None:
    """A schema is forgotten for a while. One of two events of that schema was sent again later, by another one."""
    lake = Lake(spark, settings, str(tmp_path / "lake"))
    lake.create()
    now = datetime.now(UTC).replace(microsecond=0)
    before, hour = now - timedelta(2), timedelta(hours=1)
    a, b = (EVENT._replace(correlation=name) for name in "ab")
    older = [framed(event, 9, driverAge=33) for event in (a, b)]
    producer = Producer(cluster.client_config())
    for value, sent in ((older[0], before), (older[1], before), (b"not an event", before), (framed(a), now)):
        producer.produce(settings.positions, value, "21", 0, timestamp=int(sent.timestamp() * 1000))
    assert producer.flush(PATIENCE) == 0
    lake.fill()

    def found() -> tuple[dict[str, datetime], list[str], int]:
        silver = {row.correlationId: row.sent.astimezone(UTC) for row in lake.read("silver").collect()}
        return silver, sorted(row.reason for row in lake.read("quarantine").collect()), sum(n for n, _ in counts(lake).values())

    whole = found()
    assert whole == ({"a": before, "b": before}, ["header"], 2)
    forgotten = schemas.pop(9)
    lake.back_fill(now - 3 * hour, now - hour)  # nothing came then
    assert found() == whole
    lake.back_fill(before - hour, before + hour)
    assert found() == ({"a": now}, ["header", "schema", "schema"], 1)
    schemas[9] = forgotten
    for _ in range(2):
        lake.back_fill(before - hour, before + hour)
        assert found() == ({"a": now, "b": before}, ["header"], 2)
    lake.optimize("1 hour")
    assert found()[2] == 2


def test_what_the_stream_drops_as_late_is_added(
    spark: SparkSession,
    cluster: Cluster,
    postgresql_server: str,
    settings: Settings,
    schemas: dict[int, str],
    tmp_path: Path,
) -> None:
    """Some reports come up to three hours late, and some again hours later. The stream runs all the time."""
    schema = f"late_{uuid.uuid4().hex[:8]}"
    topics = {name: f"{name}_{schema}" for name in ("drivers", "dangerous", "dead_letters")}
    settings = replace(settings, database=postgresql_server, schema=schema, trigger="0 seconds", **topics)
    for topic in topics.values():
        create(cluster, topic, 1)
    send_drivers(cluster.client_config(), settings.drivers)
    reports = Trucks(4, interval=60_000, disorder=3, late=0.15, late_by=180, twice=0.05, malformed=0.05).reports(240)
    parts = [reports[:90], reports[90:180], [*reports[180:], *reports[:20]]]  # with events of the first part again
    pipeline, lake = Pipeline(spark, settings).start(), Lake(spark, settings, str(tmp_path / "lake"))
    lake.create()
    assert reconcile(spark, settings, lake, pipeline.tables) == 0  # nothing to compare yet
    late = [0]
    for part in parts:
        send(cluster, settings, part)
        pipeline.catch_up()
        lake.fill()
        late.append(reconcile(spark, settings, lake, pipeline.tables))
    assert late == sorted(late) and 0 < late[-1] == reconcile(spark, settings, lake, pipeline.tables)
    wanted = answers(report.event for report in reports if report.event)
    assert pipeline.tables.answers() == wanted
    [(counted, least)] = pipeline.tables.ask("SELECT sum(events)::BIGINT, min(late) FROM {schema}.driving")
    [(dead,)] = pipeline.tables.ask("SELECT sum(dead)::BIGINT FROM {schema}.batches")
    malformed = sum(report.event is None for part in parts for report in part)
    assert counted + late[-1] + dead == wanted.events + malformed and least == 0
    pipeline.stop()
    pipeline.tables.drop()
