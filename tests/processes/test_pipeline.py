"""The truck pipeline on Spark: what its functions make of records, and that a stream, a batch and the ledger agree.

Chapter 11 runs it with a registry, and kills Spark and a broker; here a small registry of the test's own answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import Row, SparkSession

from kafkacourse.ch11_spark_pipeline.reading import Reader
from kafkalab import Cluster, ConnectCluster, PostgreSQL, SparkCluster, spark_session, wait_until
from kafkalab.cluster import Listener
from kafkalab.distribution import java_command
from kafkalab.security import Security
from kafkalab.spark import kafka_options
from kafkalab.spark.archive import classpath
from kafkalab.spark.jvm import jvm_options
from kafkalab.spark.streaming import new_progress
from pipeline_faults import open_office
from pipeline_support import HUGE, SCHEMAS, framed, kept, prepare, send, settings_file
from small_registry import SmallRegistry
from support import PATIENCE, create, delete, empty, put
from truck_pipeline import (
    DRIVERS,
    Event,
    Pipeline,
    Report,
    Settings,
    Trucks,
    answers,
    connect_drivers,
    send_drivers,
    transform,
)
from truck_pipeline import __main__ as pipeline_main
from truck_pipeline.__main__ import main
from truck_pipeline.checkpoint import CheckpointRefused
from truck_pipeline.drivers import Driver
from truck_pipeline.tables import Tables

pytestmark = pytest.mark.cluster

NOW = datetime(2026, 11, 1, tzinfo=UTC)
EVENT = Event(1_506_974_405_000, 103, 21, 1927624662, "Overspeed", 41.7, -90.6, "103-1")


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    yield spark_session(cluster, delta=True)
    spark_session().stop()


def decoded(spark: SparkSession, *values: bytes | None) -> list[Row]:
    columns = "value BINARY, timestamp TIMESTAMP, key BINARY, topic STRING, partition INT, offset BIGINT"
    records = spark.createDataFrame([(value, NOW, b"key", "t", 1, offset) for offset, value in enumerate(values)], columns)
    return transform.decoded(records, SCHEMAS).collect()


def test_events_are_read_whichever_schema_wrote_them(spark: SparkSession) -> None:
    rows = decoded(spark, framed(EVENT), framed(EVENT, 9, driverAge=33))
    happened = datetime.fromtimestamp(EVENT.timestamp / 1000, UTC).replace(tzinfo=None)
    for row in rows:
        found = (row.truckId, row.driverId, row.routeId, row.eventType, row.latitude, row.longitude, row.correlationId)
        assert (row.dead, found) == (None, tuple(EVENT)[1:]) and row.time == happened


def test_what_is_wrong_with_malformed_values(spark: SparkSession) -> None:
    good = framed(EVENT)

    def why(*values: bytes | None) -> list[str]:
        return [row.dead.reason for row in decoded(spark, *values)]

    assert why(None, b"", b"\0\0", b"18,28,Normal", good[4:]) == ["header"] * 5
    assert why(b"\0\0\0\0\x08" + good[5:], b"\0\xff\xff\xff\xff" + good[5:]) == ["schema"] * 2
    assert why(good[:-8]) == ["value"]
    impossible = [
        EVENT._replace(timestamp=-1),
        EVENT._replace(timestamp=1 << 62),
        EVENT._replace(kind="Over\0speed"),
        EVENT._replace(correlation=""),
        EVENT._replace(correlation="1" * 3000),
    ]
    assert why(*[framed(event) for event in impossible]) == ["content"] * len(impossible)
    assert why(framed(EVENT._replace(kind="speed" * 20_000))) == ["size"]


@pytest.mark.parametrize(
    ("ahead", "reason"), [(-31_536_000, None), (-3600, None), (-60, None), (60, None), (3600, "clock"), (31_536_000, "clock")]
)
def test_a_clock_that_is_fast_by_more_than_minutes(spark: SparkSession, ahead: int, reason: str | None) -> None:
    [row] = decoded(spark, framed(EVENT._replace(timestamp=int(NOW.timestamp() + ahead) * 1000)))
    assert (row.dead and row.dead.reason) == reason


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


def test_the_topic_of_drivers_follows_their_table(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    connect = ConnectCluster(cluster)
    connect.add_plugin("debezium-postgres")
    with PostgreSQL() as database, connect:
        settings = Settings(kafka_options(cluster), "none", database.url, str(tmp_path), drivers="captured")
        create(cluster, settings.drivers, 1, cleanup_policy="compact")
        open_office(database)
        with psycopg.connect(database.url, autocommit=True) as office:
            for refused in (replace(settings, database="postgresql://127.0.0.1"), wrong_password(settings)):
                with pytest.raises(ValueError, match=r"Connect doesn't take the connector: .*(required|authentication failed)"):
                    connect_drivers(connect.url, refused)
            connect.wait_until_running(connect_drivers(connect.url, settings))
            office.execute("UPDATE driver SET first_name = 'Ray' WHERE id = 35")
            office.execute("DELETE FROM driver WHERE id = 10")

        def captured() -> dict[int, Driver]:
            records = spark.read.format("kafka").options(**settings.source(settings.drivers)).load()
            return {row.id: Driver(*row) for row in transform.latest_drivers(records).collect()}

        wanted = {driver.id: driver for driver in DRIVERS} | {35: Driver(35, "Ray", "Novak", True)}
        del wanted[10]
        wait_until(lambda: captured() == wanted, PATIENCE, "the topic to equal the table", last_seen=captured)


def wrong_password(settings: Settings) -> Settings:
    return replace(settings, database=psycopg.conninfo.make_conninfo(settings.database, password="wrong"))


def test_a_stream_a_batch_and_the_ledger_agree(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While they run, PostgreSQL is killed, trucks get a new schema, and a record comes that is too large for the dead letters."""
    reports = Trucks(malformed=0.05).reports(400)
    wanted = answers(report.event for report in reports if report.event)
    reports.insert(10, Report(99, malformed=b"\0" * (HUGE // 2)))
    with PostgreSQL() as database, SmallRegistry() as registry:
        settings = Settings(
            kafka_options(cluster), registry.url, database.url, str(tmp_path / "point"), "streams", trigger="0 seconds"
        )
        prepare(cluster, settings)
        pipeline = Pipeline(spark, settings).start()  # before anybody registered a schema
        registry.schemas[7] = SCHEMAS[7]
        send(cluster, settings, reports[:200])
        pipeline.catch_up()
        database.kill()
        registry.schemas[9] = SCHEMAS[9]
        send(cluster, settings, reports[200:300], schema=9)
        wait_until(lambda: "PostgreSQL doesn't answer" in caplog.text, PATIENCE, "the stream to notice")
        database.start()
        pipeline.catch_up()
        so_far = answers(report.event for report in reports[:300] if report.event)
        assert pipeline.tables.answers() == so_far
        reading = Reader(cluster.client_config()).read(pipeline)
        assert (reading.running, reading.events, reading.lag) == (True, so_far.events, 0)
        assert reading.latency and 0 < reading.latency[0] <= reading.latency[1] < 600
        rows_of_state = [progress["stateOperators"][0]["numRowsTotal"] for progress in new_progress(pipeline.query)]
        assert max(rows_of_state) == so_far.events  # twice as many where a batch works its rows out twice
        pipeline.stop()

        send(cluster, settings, reports[300:])
        again = Pipeline(spark, settings).start()  # goes on from the checkpoint
        again.catch_up()
        again.stop()
        assert again.tables.answers() == wanted

        monkeypatch.setenv("PIPELINE_DATABASE", database.url)
        file = settings_file(
            tmp_path,
            {"bootstrap.servers": cluster.bootstrap_servers},
            registry={"url": registry.url},
            checkpoint={"folder": str(tmp_path / "unused")},
            database={"schema": "batch"},
        )
        main(["batch", "--settings", str(file)])
        assert Pipeline(spark, replace(settings, schema="batch")).tables.answers() == wanted
        what_a_start_refuses(spark, cluster, settings, database)
        assert again.tables.answers() == wanted

    def records(topic: str) -> list[Row]:
        source = spark.read.format("kafka").options(**settings.source(topic), includeHeaders=True)
        return source.load().collect()

    # A batch that PostgreSQL interrupted comes to the topic once all the same: only the tables are written again.
    assert sorted(row.key.decode() for row in records(settings.dangerous)) == sorted(wanted.dangerous)
    dead_places: set[tuple[str, str]] = set()
    for letter in records(settings.dead_letters):  # a batch that ran again may have sent some again
        headers = {header.key: header.value.decode() for header in letter.headers}
        assert headers["dead.topic"] == settings.positions and headers["dead.reason"] and int(headers["dead.timestamp"])
        dead_places.add((headers["dead.partition"], headers["dead.offset"]))
        if letter.key == b"99":
            assert (len(letter.value), headers["dead.reason"], headers["dead.cut"]) == (900_000, "size", "1500002")
    assert len(dead_places) == sum(report.event is None for report in reports)


def test_what_a_stream_remembers_drops_and_counts(
    spark: SparkSession, cluster: Cluster, postgresql_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can't be read is never late, and leaves nothing in the state."""
    monkeypatch.setattr("truck_pipeline.writers.Writers.ask", lambda *_: SCHEMAS)
    schema = f"pipeline_{uuid.uuid4().hex[:8]}"
    topics = {name: f"{name}_{schema}" for name in ("positions", "drivers", "dangerous", "dead_letters")}
    settings = Settings(
        kafka_options(cluster), "none", postgresql_server, str(tmp_path), schema, trigger="0 seconds", refresh=0, **topics
    )
    for topic in topics.values():
        create(cluster, topic, 1)

    def at(minute: int, name: str) -> bytes:
        return framed(EVENT._replace(timestamp=EVENT.timestamp + minute * 60_000, correlation=name))

    pipeline = Pipeline(spark, settings).start()
    batches = (
        [at(0, "a"), at(20, "b"), at(20, "b")],
        [b"not an event", b"not an event", at(0, "late"), at(16, "c"), at(20, "b")],
        [b"not an event", at(60, "d")],
        [],
    )
    for values, name in zip(batches, (None, "Ada", "Bea", "Cy"), strict=True):
        if name:
            send_drivers(cluster.client_config(), settings.drivers, [Driver(EVENT.driver, name, "Page", True)])
        put(cluster, settings.positions, [(None, value, 0) for value in values])
        pipeline.catch_up()
    assert pipeline.query is not None
    assert pipeline.query.lastProgress["stateOperators"][0]["numRowsTotal"] == 1
    counts = dict.fromkeys((0, 16, 20, 60), (1, 1))
    assert counted(pipeline) == counts
    # A driver's name counts from when the topic has it; an alarm that is there stays as it is.
    names = {"a": None, "b": None, "c": "Ada Page", "d": "Bea Page"}
    assert pipeline.tables.answers().dangerous == {event: (EVENT.driver, name) for event, name in names.items()}
    letters = spark.read.format("kafka").options(**settings.source(settings.dead_letters)).load().collect()
    assert [letter.value for letter in letters] == [b"not an event"] * 3
    with pytest.raises(CheckpointRefused, match=f"a stream counts in the tables of {schema}"):
        Pipeline(spark, settings).run_batch()
    pipeline.stop()
    # As if Spark had died when it had written the last batch with data, and before it could note that.
    last = max(int(commit.name) for commit in (tmp_path / "stream/commits").glob("[0-9]*"))
    for log, batch in (("offsets", last), ("commits", last), ("commits", last - 1)):
        for file in (f"{batch}", f".{batch}.crc"):
            (tmp_path / "stream" / log / file).unlink(missing_ok=True)
    again = Pipeline(spark, settings).start()
    again.catch_up()
    again.stop()
    assert counted(again) == counts
    replay = Pipeline(spark, replace(settings, checkpoint=str(tmp_path / "lost"))).start()  # the tables begin anew
    replay.catch_up()
    replay.stop()
    assert counted(replay) == counts | {0: (2, 2)}  # all in one batch, so nothing is late
    replay.tables.drop()


def counted(pipeline: Pipeline) -> dict[int, tuple[int, int]]:
    """Events and dangerous ones, by the minutes since the first event."""
    return {at // 60 - EVENT.timestamp // 60_000: found for (at, _), found in pipeline.tables.answers().counts.items()}


def what_a_start_refuses(spark: SparkSession, cluster: Cluster, settings: Settings, database: PostgreSQL) -> None:
    """The tables stay as they are, and so does the checkpoint."""

    def refused(error: type[Exception], said: str, **changed: object) -> None:
        with pytest.raises(error, match=said):
            Pipeline(spark, replace(settings, wait=0, **changed)).start()

    point = Path(settings.checkpoint)
    before = kept(point)
    refused(CheckpointRefused, "belongs to another query: its schema of tables is streams, not second", schema="second")
    refused(CheckpointRefused, "belongs to another query: it holds commits, ", checkpoint=str(point / "stream"))
    refused(ConnectionError, "the registry at http://127.0.0.1:1 hasn't answered for 0 s", registry="http://127.0.0.1:1")
    refused(LookupError, "there is no topic nowhere at", positions="nowhere")
    for other in ("drivers", "dangerous", "dead_letters"):
        refused(LookupError, f"there is no topic without_{other} at", **{other: f"without_{other}"})
    admin = AdminClient(cluster.client_config())
    [deleted] = admin.delete_records([TopicPartition(settings.positions, 0, 5)]).values()
    deleted.result(PATIENCE)
    refused(CheckpointRefused, "is empty, but the tables of streams aren't", checkpoint=f"{point}-lost")
    database.kill()
    refused(ConnectionError, "PostgreSQL hasn't answered for 0 s")
    database.start()
    delete(cluster, settings.positions)
    create(cluster, settings.positions, 2)
    refused(CheckpointRefused, "belongs to a topic that was deleted")
    assert before == kept(point)
    assert not Path(f"{point}-lost").exists()


def by_spark_submit(arguments: list[str], folder: Path) -> None:
    """What the script of that name calls, in a process of its own. The script itself wants a module that small Javas lack."""
    java = [str(java_command()), *jvm_options("512m", folder), "-cp", classpath(), "org.apache.spark.deploy.SparkSubmit"]
    options = ["--master", "local[2]", "--conf", "spark.ui.enabled=false", str(pipeline_main.__file__)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [*java, *options, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]  # Spark's launcher joins both of Python's into the first


def test_a_kafka_that_wants_a_login(
    spark: SparkSession,
    postgresql_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    security = Security({"pipeline": 'quo"ted\\secret'}, super_users=["pipeline"])
    schema = f"pipeline_{uuid.uuid4().hex[:8]}"
    monkeypatch.setenv("PIPELINE_DATABASE", postgresql_server)
    reports = Trucks().reports(200)
    listeners = (Listener("PLAINTEXT"), Listener("SASL_SSL", "SASL_SSL"))
    with Cluster(1, listeners=listeners, security=security) as secured, SmallRegistry(SCHEMAS) as registry:
        for topic in ("truck_position", "driver"):
            create(secured, topic, 2, 1)
        send_drivers(secured.client_config())
        put(secured, "truck_position", [(str(r.driver), framed(r.event), -1) for r in reports if r.event])
        login = secured.clients.java_config("pipeline", "SASL_SSL")
        places = {"registry": {"url": registry.url}, "checkpoint": {"folder": str(tmp_path)}, "database": {"schema": schema}}
        wrong = {name: value.replace("quo", "wrong") for name, value in login.items()}
        with pytest.raises(SystemExit):
            main(["batch", "--settings", str(settings_file(tmp_path, wrong, **places))])
        said = capsys.readouterr().err
        assert f"no broker answers at {login['bootstrap.servers']}" in said
        assert "Authentication failed" in said
        by_spark_submit(["batch", "--settings", str(settings_file(tmp_path, login, **places))], tmp_path)
    tables = Tables(postgresql_server, schema)
    assert tables.answers() == answers(report.event for report in reports if report.event)
    tables.drop()


def stream_conf() -> dict[str, str]:
    """Spark's settings in the manifest for Kubernetes."""
    objects = yaml.safe_load_all((Path(__file__).parents[2] / "pipeline" / "deploy" / "pipeline.yaml").read_text())
    [files] = [one["data"] for one in objects if one["kind"] == "ConfigMap"]
    return dict(line.split(maxsplit=1) for line in files["stream.conf"].splitlines() if not line.startswith("#"))


def test_the_same_on_a_spark_cluster_that_a_variable_names(
    spark: SparkSession, cluster: Cluster, postgresql_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on somebody's own: all that is known of it is its address and some settings. The state is as on Kubernetes."""
    spark.stop()
    empty(cluster)
    monkeypatch.setattr("truck_pipeline.writers.Writers.ask", lambda *_: SCHEMAS)
    schema = f"pipeline_{uuid.uuid4().hex[:8]}"
    settings = Settings(kafka_options(cluster), "none", postgresql_server, str(tmp_path / "point"), schema)
    prepare(cluster, settings)
    reports = Trucks().reports(200)
    send(cluster, settings, reports)
    with SparkCluster(1) as workers:
        own = {"spark.authenticate": True, "spark.authenticate.secret": workers.secret, "spark.executor.memory": "512m"}
        more = {**own, **{name: value for name, value in stream_conf().items() if name.startswith("spark.sql.streaming.")}}
        monkeypatch.setenv("KAFKALAB_SPARK_MASTER", workers.url)
        monkeypatch.setenv("KAFKALAB_SPARK_SETTINGS", json.dumps(more))
        pipeline = Pipeline(spark_session(cluster), settings).start()
        pipeline.catch_up()
        assert pipeline.tables.answers() == answers(report.event for report in reports if report.event)
        assert len(workers.applications) == 1
        assert "rocksdbCommitCheckpointLatency" in pipeline.query.recentProgress[0]["stateOperators"][0]["customMetrics"]
        pipeline.tables.drop()
        spark_session().stop()
