"""What comes to the pipeline that nobody promised: fast clocks, made-up schemas, new fields, a second driver, changed settings."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession

from kafkalab import Cluster, spark_session, wait_until
from kafkalab.cluster import Listener
from kafkalab.security import Security
from kafkalab.spark import kafka_options
from kafkalab.spark.streaming import new_progress
from pipeline_support import SCHEMAS, framed
from small_registry import SmallRegistry
from support import PATIENCE, create, delete, put
from truck_pipeline import Event, Pipeline, Settings, Trucks, answers, app, send_drivers, transform
from truck_pipeline.brokers import require_topic
from truck_pipeline.checkpoint import CheckpointRefused
from truck_pipeline.events import SCHEMA
from truck_pipeline.tables import Batch, Tables, TablesTaken

pytestmark = pytest.mark.cluster

HOUR = 3_600_000  # milliseconds
PARTITIONS, PROVIDER = "spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="module")
def spark(cluster: Cluster) -> Iterator[SparkSession]:
    yield spark_session(cluster)
    spark_session().stop()


@pytest.fixture
def settings(cluster: Cluster, postgresql_server: str, tmp_path: Path) -> Iterator[Settings]:
    """Topics and tables of a test's own."""
    name = f"input_{uuid.uuid4().hex[:8]}"
    topics = {topic: f"{topic}_{name}" for topic in ("positions", "drivers", "dangerous", "dead_letters")}
    for topic in topics.values():
        create(cluster, topic, 2)
    send_drivers(cluster.client_config(), topics["drivers"])
    with SmallRegistry(SCHEMAS) as registry:
        settings = Settings(
            kafka_options(cluster), registry.url, postgresql_server, str(tmp_path), name, trigger="0 seconds", wait=5, **topics
        )
        yield settings
    with psycopg.connect(postgresql_server) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


def events_of_today(number: int, trucks: int = 1000) -> list[Event]:
    """Events up to now, by clocks that are right."""
    events = [
        report.event for report in Trucks(trucks, late=0, twice=0, malformed=0, interval=5).reports(number) if report.event
    ]
    since = int(time.time() * 1000) - max(event.timestamp for event in events)
    return [event._replace(timestamp=event.timestamp + since) for event in events]


def send(cluster: Cluster, settings: Settings, events: list[Event], schema: int = 7, **more: object) -> None:
    put(cluster, settings.positions, [(str(event.driver), framed(event, schema, **more), -1) for event in events])


def dead(spark: SparkSession, settings: Settings) -> list[Row]:
    """Dead letters, with their headers as a map."""
    source = spark.read.format("kafka").options(**settings.source(settings.dead_letters), includeHeaders=True)
    return source.load().selectExpr("value", "map_from_entries(headers) AS headers").collect()


def dropped(pipeline: Pipeline) -> int:
    """Rows that the stream dropped as too late."""
    assert pipeline.query is not None
    return sum(progress["stateOperators"][0]["numRowsDroppedByWatermark"] for progress in new_progress(pipeline.query))


def test_one_fast_truck_makes_nobody_late(spark: SparkSession, cluster: Cluster, settings: Settings) -> None:
    """One is an hour ahead. Another one even has its records stamped so, by a producer of its own."""
    honest = events_of_today(1500)
    fast = [honest[0]._replace(timestamp=honest[0].timestamp + HOUR, correlation=f"fast-{number}") for number in range(5)]
    pipeline = Pipeline(spark, settings).start()
    send(cluster, settings, honest[:500])
    send(cluster, settings, fast)
    stamper = Producer(cluster.client_config())
    stamped = honest[0]._replace(timestamp=honest[0].timestamp + HOUR * 5 // 6, correlation="stamped")
    stamper.produce(settings.positions, framed(stamped), timestamp=stamped.timestamp)
    assert stamper.flush(PATIENCE) == 0
    pipeline.catch_up()
    send(cluster, settings, honest[500:])
    pipeline.catch_up()
    assert dropped(pipeline) == 0
    pipeline.stop()
    assert pipeline.tables.answers() == answers([*honest, stamped])
    assert [letter.headers["dead.reason"] for letter in dead(spark, settings)] == [b"clock"] * len(fast)


def test_made_up_schemas_cost_no_restart(spark: SparkSession, cluster: Cluster, settings: Settings) -> None:
    events = events_of_today(200)
    made_up = [b"\0" + number.to_bytes(4, "big") + framed(events[0])[5:] for number in range(1000, 11_000)]
    pipeline = Pipeline(spark, settings).start()
    began = pipeline.query
    producer = Producer(cluster.client_config())
    for value in made_up:
        producer.produce(settings.positions, value, headers=[("origin", b"nowhere")])
    assert producer.flush(PATIENCE) == 0
    send(cluster, settings, events)
    pipeline.catch_up()
    assert pipeline.query is began
    pipeline.stop()
    assert pipeline.tables.answers() == answers(events)
    letters = dead(spark, settings)
    assert {letter.headers["dead.reason"] for letter in letters} == {b"schema"}
    assert {letter.headers["origin"] for letter in letters} == {b"nowhere"}
    assert {bytes(letter.value) for letter in letters} == set(made_up)


def test_a_batch_waits_for_a_registry_that_is_gone(
    spark: SparkSession, cluster: Cluster, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    events = events_of_today(100)
    with SmallRegistry({7: SCHEMAS[7]}) as registry:
        pipeline = Pipeline(spark, replace(settings, registry=registry.url, wait=PATIENCE)).start()
        send(cluster, settings, events[:50])
        pipeline.catch_up()
    send(cluster, settings, events[50:], schema=9, driverAge=33)  # nobody can say what that is
    wait_until(lambda: f"the registry at {registry.url} doesn't answer" in caplog.text, PATIENCE, "the batch to wait")
    with SmallRegistry(SCHEMAS, int(registry.url.rpartition(":")[2])):
        pipeline.catch_up()
        pipeline.stop()
    assert pipeline.tables.answers() == answers(events)
    assert not dead(spark, settings)


def test_a_topic_made_anew_under_a_running_stream(spark: SparkSession, cluster: Cluster, settings: Settings) -> None:
    events = events_of_today(100)
    pipeline = Pipeline(spark, settings).start()
    send(cluster, settings, events)
    pipeline.catch_up()
    delete(cluster, settings.positions)
    create(cluster, settings.positions, 2)
    send(cluster, settings, events_of_today(20))
    with pytest.raises(StreamingQueryException, match="(?i)offset|data"):
        pipeline.wait_for_end()
    assert pipeline.tables.answers() == answers(events)
    with pytest.raises(CheckpointRefused, match="belongs to a topic that was deleted"):
        Pipeline(spark, settings).start()


def test_a_field_more_and_the_same_checkpoint(
    spark: SparkSession, cluster: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps that the package's README gives: a default, the reader's schema, and the stream goes on, ids included."""
    events = events_of_today(300)
    pipeline = Pipeline(spark, settings).start()
    send(cluster, settings, events[:150])
    pipeline.catch_up()
    pipeline.stop()
    reader = json.loads(SCHEMA)
    reader["fields"].append({"name": "driverAge", "type": "int", "default": -1})
    monkeypatch.setattr(transform, "decoded", partial(transform.decoded, reader=json.dumps(reader)))
    send(cluster, settings, events[100:200])  # some for the second time
    send(cluster, settings, events[200:], schema=9, driverAge=33)
    pipeline = Pipeline(spark, settings).start()
    pipeline.catch_up()
    pipeline.stop()
    assert pipeline.tables.answers() == answers(events)
    source = spark.read.format("kafka").options(**settings.source(settings.positions)).load()
    ages = transform.events(transform.decoded(source, SCHEMAS)).groupBy("driverAge").count().collect()
    assert {row.driverAge: row["count"] for row in ages} == {-1: 250, 33: 100}


def test_of_two_drivers_one_wins(spark: SparkSession, cluster: Cluster, settings: Settings, tmp_path: Path) -> None:
    events = events_of_today(100)
    first = Pipeline(spark, settings).start()
    send(cluster, settings, events)
    for checkpoint in (settings.checkpoint, f"{tmp_path}-another"):
        with pytest.raises(
            TablesTaken, match=f"another pipeline writes to the tables of {settings.schema}. Nothing was changed"
        ):
            Pipeline(spark, replace(settings, checkpoint=checkpoint)).start()
    first.catch_up()
    first.stop()
    assert first.tables.answers() == answers(events)
    Pipeline(spark, settings).start().stop()  # nobody is there any more


def test_an_end_lets_in_no_batch_after_the_one_at_work(
    spark: SparkSession, cluster: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = events_of_today(100)
    send(cluster, settings, events)
    inside, out, put_batch = threading.Event(), threading.Event(), Tables.put

    def slow(tables: Tables, batch: Batch, *answers: object) -> None:
        inside.set()
        assert out.wait(PATIENCE)
        put_batch(tables, batch, *answers)

    monkeypatch.setattr(Tables, "put", slow)
    pipeline = Pipeline(spark, replace(settings, most=20)).start()
    assert inside.wait(PATIENCE)
    ending = threading.Thread(target=pipeline.stop_after_batch)
    ending.start()
    out.set()
    ending.join(PATIENCE)
    pipeline.wait_for_end()  # and nothing has failed
    assert pipeline.tables.ask("SELECT array_agg(batch) FROM {schema}.batches") == [([0],)]
    assert [path.name for path in Path(settings.checkpoint, "stream/commits").glob("[0-9]*")] == ["0"]
    alarms = spark.read.format("kafka").options(**settings.source(settings.dangerous)).load().count()
    assert alarms == len(pipeline.tables.answers().dangerous)
    again = Pipeline(spark, settings).start()
    again.catch_up()
    again.stop_after_batch()  # there is none
    assert again.tables.answers() == answers(events)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda spark, settings: replace(settings, patience="6 minutes"),
            "its patience is 5 minutes, not 6 minutes, and the ids",
        ),
        (lambda spark, settings: replace(settings, window="2 minutes"), "its window is 1 minute, not 2 minutes, and counts of"),
        (
            lambda spark, settings: configured(spark, settings, PARTITIONS, "3"),
            "its number of shuffle partitions is 2, not 3, and",
        ),
        (lambda spark, settings: configured(spark, settings, PROVIDER, ROCKS), "its state store is .*HDFS.*, not .*RocksDB"),
    ],
)
def test_a_checkpoint_of_other_settings(
    spark: SparkSession, settings: Settings, change: Callable[[SparkSession, Settings], Settings], said: str
) -> None:
    before = {name: spark.conf.get(name) for name in (PARTITIONS, PROVIDER)}
    Pipeline(spark, settings).start().stop()
    try:
        with pytest.raises(CheckpointRefused, match=f"belongs to another query: {said}"):
            Pipeline(spark, change(spark, settings)).start()
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def test_a_checkpoint_of_another_version(spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    Pipeline(spark, settings).start().stop()
    monkeypatch.setattr(app, "_VERSION", app._VERSION + 1)
    with pytest.raises(CheckpointRefused, match=r"its version is \d, not \d, and this version keeps other state"):
        Pipeline(spark, settings).start()


def configured(spark: SparkSession, settings: Settings, name: str, value: str) -> Settings:
    """Change a setting of Spark's."""
    spark.conf.set(name, value)
    return settings


def test_a_kafka_that_wants_a_login() -> None:
    security = Security({"pipeline": 'quo"ted\\secret'}, super_users=["pipeline"])
    with Cluster(1, listeners=(Listener("PLAINTEXT"), Listener("SASL_SSL", "SASL_SSL")), security=security) as secured:
        create(secured, "t", 2, 1)
        login = secured.clients.java_config("pipeline", "SASL_SSL")
        found = require_topic(login, "t")
        assert found.whole
        put(secured, "t", [(None, "one", 0)])
        admin = AdminClient(secured.client_config())
        [deleted] = admin.delete_records([TopicPartition("t", 0, 1)]).values()
        deleted.result(PATIENCE)
        assert require_topic(login, "t") == (found.id, False, 2)
        wrong = {name: value.replace("quo", "wrong") for name, value in login.items()}
        with pytest.raises(ConnectionError, match="no broker answers at .*: .*Authentication failed"):
            require_topic(wrong, "t")
