"""The truck pipeline on Spark: what its functions make of records, and that streams, a batch and the ledger agree.

Chapter 11 runs it with a registry, and kills Spark and a broker; here the registry's answer is given.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pytest
from pyspark.sql import Row, SparkSession

from kafkalab import Cluster, SparkCluster, spark_session
from kafkalab.spark import kafka_options
from pipeline import DRIVERS, Event, Lake, Pipeline, Report, Settings, Trucks, answers, send_drivers, transform
from pipeline.__main__ import main
from pipeline.events import SCHEMA
from pipeline.lake import LakeGone
from support import create, empty, put

pytestmark = pytest.mark.cluster

FIELDS = [field["name"] for field in json.loads(SCHEMA)["fields"]]
OLDER = json.loads(SCHEMA) | {"fields": [{"name": "driverAge", "type": "int"}, *json.loads(SCHEMA)["fields"]]}
SCHEMAS = {7: SCHEMA, 9: json.dumps(OLDER)}
EVENT = Event(1_506_974_405_000, 103, 21, 1927624662, "Overspeed", 41.7, -90.6, "103-1")


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    yield spark_session(cluster, delta=True)
    spark_session().stop()


def framed(event: Event, schema: int = 7, **more: object) -> bytes:
    """An event as a client of the registry writes it."""
    payload = io.BytesIO()
    fields = dict(zip(FIELDS, event, strict=True)) | more
    fastavro.schemaless_writer(payload, fastavro.parse_schema(json.loads(SCHEMAS[schema])), fields)
    return b"\0" + schema.to_bytes(4, "big") + payload.getvalue()


def decoded(spark: SparkSession, *values: bytes | None) -> list[Row]:
    records = spark.createDataFrame([(value,) for value in values], "value BINARY")
    return transform.decoded(records, SCHEMAS).collect()


def test_events_are_read_whichever_schema_wrote_them(spark: SparkSession) -> None:
    rows = decoded(spark, framed(EVENT), framed(EVENT, 9, driverAge=33))
    assert [(tuple(row.event), row.problem) for row in rows] == [(tuple(EVENT), None)] * 2


def test_what_is_wrong_with_malformed_values(spark: SparkSession) -> None:
    good = framed(EVENT)
    unframed = decoded(spark, None, b"", b"\0\0", b"18,28,Normal", good[4:])
    assert {row.problem for row in unframed} == {"no header of a schema"}
    [unknown, cut] = decoded(spark, b"\0\0\0\0\x08" + good[5:], good[:-8])
    assert unknown.problem == "a schema that the registry doesn't know for this topic"
    assert cut.problem == "the value doesn't fit its schema"


def test_the_last_row_of_each_driver_counts(spark: SparkSession) -> None:
    rows = [("10", 0, "Ada"), ("11", 1, "Bela"), ("10", 2, "Anna"), ("11", 3, None)]
    values = [(key, number, name and json.dumps({"id": int(key), "first_name": name})) for key, number, name in rows]
    records = spark.createDataFrame(values, "key STRING, offset LONG, value STRING")
    assert [(row.id, row.first_name) for row in transform.latest_drivers(records).collect()] == [(10, "Anna")]


def test_an_address_that_wants_a_login_or_where_nobody_is(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    """A listener with TLS ends a connection on which no handshake comes, as this one does."""

    def settings(address: str) -> Settings:
        options = kafka_options(cluster) | {"kafka.bootstrap.servers": address}
        return Settings(options, "none", "none", str(tmp_path))

    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        closing = threading.Thread(target=close_each, args=(server,))
        closing.start()
        with pytest.raises(ConnectionError, match=f"no broker answers at {address}: .*it may want TLS or a login"):
            Pipeline(spark, settings(address)).start()
        server.shutdown(socket.SHUT_RDWR)
        closing.join()
    with pytest.raises(ConnectionError, match=f"no broker answers at {address}: (?!.*login)"):
        Pipeline(spark, settings(address)).run_batch()
    assert time.monotonic() - began < 60


def close_each(server: socket.socket) -> None:
    """Accept connections, and end each one, until the server is shut down."""
    with contextlib.suppress(OSError):
        while True:
            server.accept()[0].close()


def prepare(cluster: Cluster, settings: Settings) -> None:
    """Create the topics, and send the drivers."""
    for topic in (settings.positions, settings.drivers, settings.dangerous, settings.dead_letters):
        create(cluster, topic, 2)
    send_drivers(cluster.client_config())


def send(cluster: Cluster, settings: Settings, reports: list[Report]) -> None:
    put(cluster, settings.positions, [(str(r.driver), framed(r.event) if r.event else r.malformed, -1) for r in reports])


def test_streams_a_batch_and_the_ledger_agree(
    spark: SparkSession, cluster: Cluster, postgresql_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.app.written_schemas", lambda *_: SCHEMAS)
    schemas = [f"pipeline_{uuid.uuid4().hex[:8]}" for _ in range(2)]
    settings = Settings(
        kafka_options(cluster), "none", postgresql_server, str(tmp_path / "point"), schemas[0], trigger="0 seconds"
    )
    prepare(cluster, settings)
    reports = Trucks(malformed=0.05).reports(400)
    events = {report.event.correlation: report.event for report in reports if report.event}

    send(cluster, settings, reports[:300])
    pipeline = Pipeline(spark, settings).start()
    pipeline.catch_up()
    pipeline.stop()
    send(cluster, settings, reports[300:])
    again = Pipeline(spark, settings).start()  # goes on from the checkpoint
    again.catch_up()
    again.stop()
    wanted = answers(events.values(), DRIVERS)
    assert again.tables.answers() == wanted

    client = cluster.client_config()["bootstrap.servers"]
    monkeypatch.setenv("PIPELINE_DATABASE", postgresql_server)
    places = ["--registry", "none", "--checkpoint", str(tmp_path / "unused"), "--schema", schemas[1]]
    main(["--bootstrap-servers", client, *places, "--batch"])
    batch = Pipeline(spark, Settings(settings.kafka, "none", postgresql_server, "", schemas[1]))
    assert batch.tables.answers() == wanted

    def records(topic: str) -> list[Row]:
        source = spark.read.format("kafka").options(**settings.source(topic), includeHeaders=True)
        return source.load().collect()

    assert sorted(row.key.decode() for row in records(settings.dangerous)) == sorted(wanted.dangerous)
    dead = records(settings.dead_letters)
    assert len(dead) == sum(report.event is None for report in reports) > 0
    headers = {header.key: header.value.decode() for header in dead[0].headers}
    assert headers["topic"] == settings.positions and headers["problem"] and headers.keys() >= {"partition", "offset"}
    for schema in schemas:
        Pipeline(spark, Settings(settings.kafka, "none", postgresql_server, "", schema)).tables.drop()


def test_the_lake_survives_the_loss_of_its_folder(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.lake.written_schemas", lambda *_: SCHEMAS)
    settings = Settings(kafka_options(cluster), "none", "", str(tmp_path / "point"), positions="to_the_lake")
    folder, away = tmp_path / "lake", tmp_path / "away"
    create(cluster, settings.positions, 2)
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
    counts = {(int(row.starts.timestamp()), row.driverId): (row.events, row.dangerous) for row in lake.read("gold").collect()}
    assert counts == wanted.counts
    assert lake.read("bronze").count() == len(reports) and lake.read("silver").count() == wanted.events
    assert 0 < lake.read("silver", version=1).count() < wanted.events  # as it was after the first call


def test_the_same_on_a_spark_cluster_that_a_variable_names(
    spark: SparkSession, cluster: Cluster, postgresql_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on somebody's own: all that is known of it is its address and some settings."""
    spark.stop()
    empty(cluster)
    monkeypatch.setattr("pipeline.app.written_schemas", lambda *_: SCHEMAS)
    schema = f"pipeline_{uuid.uuid4().hex[:8]}"
    settings = Settings(kafka_options(cluster), "none", postgresql_server, str(tmp_path / "point"), schema)
    prepare(cluster, settings)
    reports = Trucks().reports(200)
    send(cluster, settings, reports)
    with SparkCluster(1) as workers:
        more = {"spark.authenticate": True, "spark.authenticate.secret": workers.secret, "spark.executor.memory": "512m"}
        monkeypatch.setenv("KAFKALAB_SPARK_MASTER", workers.url)
        monkeypatch.setenv("KAFKALAB_SPARK_SETTINGS", json.dumps(more))
        pipeline = Pipeline(spark_session(cluster), settings).start()
        pipeline.catch_up()
        assert pipeline.tables.answers() == answers(report.event for report in reports if report.event)
        assert len(workers.applications) == 1
        pipeline.tables.drop()
        spark_session().stop()
