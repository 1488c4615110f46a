"""What `ConnectCluster` and its connectors guarantee.

Workers and connectors are processes of this machine on every back end. So beside containers two tests are enough each day: a
worker that is killed, and the end.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import paho.mqtt.client as mqtt
import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from paho.mqtt.enums import CallbackAPIVersion

from connect_support import SMT, TEXT, ask, wait_until_failed
from contract_support import DOCKER_AT_LENGTH
from database_support import tell
from kafkalab import Cluster, resources, wait_until
from kafkalab.checks import CheckContext
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.errors import ConnectFailed, JavaError, NotEnoughResources, PortInUse
from kafkalab.services import ConnectCluster, MqttBroker, PostgreSQL, SchemaRegistry
from kafkalab.services.connect import ConnectWorker
from kafkalab.services.own_plugins import SOURCE_CONNECTOR
from support import PATIENCE, create, in_a_fork, own_runs

pytestmark = DOCKER_AT_LENGTH  # it talks to a cluster as any client does

SOURCE, SINK = (f"org.apache.kafka.connect.file.FileStream{kind}Connector" for kind in ("Source", "Sink"))
JSON = "org.apache.kafka.connect.json.JsonConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SAME = """
package course;

public class Same<R extends org.apache.kafka.connect.connector.ConnectRecord<R>>
        implements org.apache.kafka.connect.transforms.Transformation<R> {
    public void configure(java.util.Map<String, ?> settings) {}
    public org.apache.kafka.common.config.ConfigDef config() { return new org.apache.kafka.common.config.ConfigDef(); }
    public R apply(R record) { return record; }
    public void close() {}
}
"""


COUNTER = """
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.*;

public class Counter extends SourceConnector {
    public ConfigDef config() { return new ConfigDef(); }
    public void start(Map<String, String> settings) {}
    public Class<Count> taskClass() { return Count.class; }
    public List<Map<String, String>> taskConfigs(int most) { return List.of(Map.of()); }
    public void stop() {}
    public String version() { return "1"; }

    public static class Count extends SourceTask {
        private long n;
        public void start(Map<String, String> settings) {
            Map<String, Object> stored = context.offsetStorageReader().offset(Map.of());
            n = stored == null ? 0 : (long) stored.get("n");
        }
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(20);
            n++;
            return List.of(new SourceRecord(Map.of(), Map.of("n", n), "counted", Schema.INT64_SCHEMA, n));
        }
        public void stop() {}
        public String version() { return "1"; }
    }
}"""


@pytest.fixture(scope="module")
def cluster(backend: str) -> Iterator[Cluster]:
    with Cluster(1, backend=backend) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def connect(cluster: Cluster) -> Iterator[ConnectCluster]:
    connect = ConnectCluster(cluster, workers=2)
    for plugin in ("avro-converter", "debezium-postgres", "jdbc", "mqtt-source"):
        connect.add_plugin(plugin)
    with connect:
        yield connect


def put(connect: ConnectCluster, name: str, **config: object) -> None:
    settings = TEXT | {key.replace("_", "."): value for key, value in config.items()}
    ask(connect, "PUT", f"/connectors/{name}/config", settings)


def wait_for(cluster: Cluster, topic: str, lines: set[str]) -> None:
    def there() -> bool:
        return topic in cluster.describe(groups=False).topics and lines <= set(CheckContext(cluster).values(topic))

    wait_until(there, PATIENCE, f"{len(lines)} lines in {topic}", interval=0.3)


def test_a_worker_that_is_killed_is_replaced_by_the_other(cluster: Cluster, connect: ConnectCluster, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"line {n}\n" for n in range(50)))
    put(connect, "lines", connector_class=SOURCE, file=str(lines), topic="lines")
    connect.wait_until_running("lines")
    wait_for(cluster, "lines", {f"line {n}" for n in range(50)})
    told = ask(connect, "GET", "/connectors/lines/status")
    [busy] = [worker for worker in connect.workers if told["tasks"][0]["worker_id"] in worker.url]
    [other] = set(connect.workers) - {busy}
    busy.kill()
    assert not busy.alive and connect.url == other.url
    with lines.open("a") as file:
        file.write("".join(f"line {n}\n" for n in range(50, 100)))
    wait_for(cluster, "lines", {f"line {n}" for n in range(100)})  # at least once: some may be there twice
    assert connect.states() == {"lines": "RUNNING", "lines task 0": "RUNNING"}

    url = busy.url
    connect.start()
    assert busy.alive and busy.url == url and ask(busy, "GET", "/connectors") == ["lines"]
    ask(busy, "DELETE", "/connectors/lines")


def handed_over(worker: ConnectWorker) -> int:
    """How many messages the MQTT source gave to Connect, as its log says."""
    return sum(int(count) for count in re.findall(r"(\d+) messages for Kafka", worker.logs()))


def test_an_mqtt_message_is_acknowledged_when_kafka_has_it(cluster: Cluster, connect: ConnectCluster) -> None:
    connect.start()
    create(cluster, "truck_position", 1, 1)
    with MqttBroker() as broker:
        source = {"connector_class": "MqttSourceConnector", "mqtt_url": broker.url, "mqtt_topics": "truck/+/position",
                  "mqtt_client_id": "connector", "topic": "truck_position", "value_converter": BYTES}  # fmt: skip
        put(connect, "mqtt", producer_override_linger_ms=600_000, **source)  # it collects, and sends nothing so soon
        connect.wait_until_running("mqtt")
        told = ask(connect, "GET", "/connectors/mqtt/status")
        [busy] = [worker for worker in connect.workers if told["tasks"][0]["worker_id"] in worker.url]
        wait_until(lambda: f"connected to {broker.url}" in busy.logs(), PATIENCE, "the connector to reach the MQTT broker")
        ask(busy, "PUT", "/admin/loggers/kafkalab.MqttSourceConnector", {"level": "DEBUG"})
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.connect(broker.host, broker.port)
        client.loop_start()
        for sent in [client.publish("truck/10/position", f"{n}", qos=1) for n in range(50)]:
            sent.wait_for_publish(30)
        wait_until(
            lambda: handed_over(busy) == 50, PATIENCE, "all messages to be handed over", last_seen=lambda: handed_over(busy)
        )
        busy.kill()  # it has them all, and Kafka has none
        broker.kill()
        assert CheckContext(cluster).record_count("truck_position") == 0
        put(connect, "mqtt", **source)
        broker.start()
        wait_for(cluster, "truck_position", {f"{n}" for n in range(50)})
        client.loop_stop()
    ask(connect, "DELETE", "/connectors/mqtt")


def test_a_worker_whose_port_is_taken_says_so_and_leaves_the_others(connect: ConnectCluster) -> None:
    worker, other = sorted(connect.workers, key=lambda worker: worker.alive)
    if worker.alive:
        worker.kill()
    port = int(worker.url.rpartition(":")[2])
    with socket.create_server((HOST, port)):
        with pytest.raises(
            PortInUse, match=f"worker {worker.number} ended by itself: another program has taken its port, {port}"
        ):
            worker.start()
    assert other.alive


def test_a_worker_knows_its_connectors_when_it_answers(cluster: Cluster) -> None:
    with ConnectCluster(cluster, settings={"group.id": "alone", "config.storage.topic": "alone-configs"}) as alone:
        put(alone, "rest", connector_class="FileStreamSource", file=os.devnull, topic="rest")
        assert "rest" in alone.states()  # perhaps UNASSIGNED
        alone.wait_until_running("rest")
        [worker] = alone.workers
        for _ in range(3):
            worker.restart()
            assert "rest" in alone.states()


def counted(cluster: Cluster) -> list[int]:
    """What the topic has so far: the source never ends, so nobody ever sees the end."""
    with Consumer(cluster.client_config(group_id="counted")) as consumer:
        _, now = consumer.get_watermark_offsets(TopicPartition("counted", 0), 30)
        consumer.assign([TopicPartition("counted", 0, 0)])
        return [int(record.value()) for record in consumer.consume(now, 60)]


@pytest.mark.at_length  # chapter 09 shows it each day
def test_a_source_of_ones_own_goes_on_from_its_offset(cluster: Cluster, connect: ConnectCluster) -> None:
    connect.compile_plugin(COUNTER, SOURCE_CONNECTOR)
    connect.start()
    for worker in connect.workers:
        worker.restart()
    put(connect, "counter", connector_class="Counter")
    wait_until(lambda: ask(connect, "GET", "/connectors/counter/offsets")["offsets"], PATIENCE, "an offset to be stored")
    told = ask(connect, "GET", "/connectors/counter/status")
    [busy] = [worker for worker in connect.workers if told["tasks"][0]["worker_id"] in worker.url]
    busy.kill()
    seen = len(counted(cluster))
    wait_until(lambda: max(counted(cluster)) > seen + 20, PATIENCE, "the other worker to count on")
    steps = [then - now for now, then in itertools.pairwise(counted(cluster))]
    assert max(steps) == 1 and sum(step < 1 for step in steps) <= 1
    ask(connect, "DELETE", "/connectors/counter")


@pytest.mark.at_length  # chapter 09 shows it each day
def test_a_line_too_large_fails_a_strict_source_and_is_skipped_by_a_tolerant_one(
    cluster: Cluster, connect: ConnectCluster, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("first\n" + "x" * 2_000_000 + "\nlast\n")
    source = {"connector_class": SOURCE, "file": str(lines)}
    for name, tolerance in (("strict", "none"), ("lenient", "all")):
        put(connect, name, topic=name, errors_tolerance=tolerance, **source)
    wait_for_failure(connect, "strict", "RecordTooLargeException")
    wait_for(cluster, "lenient", {"first", "last"})
    assert {len(value) for value in CheckContext(cluster).values("lenient")} == {5, 4}
    assert connect.states()["lenient task 0"] == "RUNNING"
    assert set(CheckContext(cluster).values("strict")) == {"first"}

    # The topic has a limit as well. Alone in its batch the line fails the task; with others the producer tries without end.
    alone = tmp_path / "alone.txt"
    alone.write_text("x" * 2_000_000 + "\n")
    put(connect, "alone", **(source | {"file": str(alone)}), topic="strict", producer_override_max_request_size=4_000_000)
    wait_for_failure(connect, "alone", "RecordTooLargeException: The request included a message larger")
    change = ConfigResource(ResourceType.TOPIC, "strict", incremental_configs=[
        ConfigEntry("max.message.bytes", "4000000", incremental_operation=AlterConfigOpType.SET)])  # fmt: skip
    admin = AdminClient(cluster.client_config())
    admin.incremental_alter_configs([change])[change].result()
    ask(connect, "DELETE", "/connectors/alone")
    put(connect, "strict", topic="strict", producer_override_max_request_size=4_000_000, **source)
    wait_for(cluster, "strict", {"first", "last"})
    assert {len(value) for value in CheckContext(cluster).values("strict")} == {5, 2_000_000, 4}
    for name in ("strict", "lenient"):
        ask(connect, "DELETE", f"/connectors/{name}")


def test_a_connector_that_fails_says_why(connect: ConnectCluster, tmp_path: Path) -> None:
    put(connect, "nowhere", connector_class=SINK, file=str(tmp_path / "none/file.txt"), topics="lines")
    with pytest.raises(ConnectFailed, match="nowhere task 0 failed: ConnectException: Couldn't find or create file"):
        connect.wait_until_running("nowhere")
    # The worker reports that failure for a moment longer, when it has taken the right settings.
    put(connect, "nowhere", connector_class=SINK, file=str(tmp_path / "file.txt"), topics="lines")
    connect.wait_until_running("nowhere")
    put(connect, "nowhere", connector_class=SINK, file=str(tmp_path / "none/file.txt"), topics="lines")
    with pytest.raises(ConnectFailed, match=r"nowhere task 0 failed: .*Couldn't find or create file"):
        connect.wait_until(lambda: False, PATIENCE, "a line", by=["nowhere"])
    connect.forget("nowhere")
    connect.forget("nowhere")  # there is none any more
    with pytest.raises(ConnectFailed, match="there is no connector 'nowhere'"):
        connect.wait_until_running("nowhere")


def test_a_connector_that_was_forgotten_begins_at_the_beginning(
    cluster: Cluster, connect: ConnectCluster, tmp_path: Path
) -> None:
    lines, copy = tmp_path / "again.txt", tmp_path / "copy.txt"
    lines.write_text("first\nlast\n")

    def sent() -> bool:
        return "again" in cluster.describe(groups=False).topics and CheckContext(cluster).values("again").count("last") > rounds

    def written() -> bool:
        return copy.exists() and copy.read_text().count("last") > rounds

    for rounds in range(2):
        put(connect, "again-in", connector_class=SOURCE, file=str(lines), topic="again")
        connect.wait_until(sent, PATIENCE, "the last line", by="again-in")
        put(connect, "again-out", connector_class=SINK, file=str(copy), topics="again")
        connect.wait_until(written, PATIENCE, "the last line in the file", by="again-out")
        for name in ("again-in", "again-out"):
            connect.forget(name)
    assert not {"again-in", "again-out"} & connect.states().keys()


def test_an_mqtt_broker_with_tls_and_passwords_lets_in_a_connector_that_has_both(
    cluster: Cluster, connect: ConnectCluster
) -> None:
    with MqttBroker(users={"truck": "no one's"}, tls=True) as broker:
        read = {"connector.class": "MqttSourceConnector", "mqtt.topics": "#", "mqtt.client.id": "login", "topic": "encrypted"}
        read |= broker.connector_config("truck") | {"value.converter": BYTES, "mqtt.timeout.ms": 1}
        put(connect, "login", **read | {"mqtt.password": "guessed"})
        wait_until_failed(connect, "login")
        with pytest.raises(ConnectFailed, match=r"no MQTT broker lets us in at ssl://127.0.0.1:\d+: Not authorized"):
            connect.wait_until_running("login")
        put(connect, "login", **read)
        wait_until(
            lambda: any(f"connected to {broker.url}" in worker.logs() for worker in connect.workers),
            PATIENCE,
            "the connector to log in",
        )
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.tls_set(broker.authority)
        client.username_pw_set("truck", "no one's")
        client.connect(broker.host, broker.port)
        client.loop_start()
        client.publish("truck/10/position", "on the way", qos=1).wait_for_publish(30)
        wait_for(cluster, "encrypted", {"on the way"})
        client.disconnect()
        client.loop_stop()
        assert not any("no one's" in worker.logs() or "guessed" in worker.logs() for worker in connect.workers)
    ask(connect, "DELETE", "/connectors/login")


def test_settings_of_the_mqtt_source_are_checked_field_by_field(connect: ConnectCluster) -> None:
    wrong = {"mqtt.url": "http://x:1", "mqtt.topics": "truck/#/position", "mqtt.qos": 2, "topic": "", "mqtt.timeout.ms": "many"}
    config = wrong | {"connector.class": "MqttSourceConnector", "name": "mqtt"}
    told = ask(connect, "PUT", "/connector-plugins/MqttSourceConnector/config/validate", config)
    found = {field["value"]["name"]: field["value"]["errors"] for field in told["configs"] if field["value"]["errors"]}
    assert found.keys() == {*wrong, "mqtt.client.id"}
    assert "expected tcp://HOST:PORT or ssl://HOST:PORT" in found["mqtt.url"][0]
    for filter_ in ("truck/+position", "truck/10/position,truck/11/position"):  # a slash is missing; it's two filters
        config["mqtt.topics"] = filter_
        told = ask(connect, "PUT", "/connector-plugins/MqttSourceConnector/config/validate", config)
        [topics] = [field["value"] for field in told["configs"] if field["value"]["name"] == "mqtt.topics"]
        assert filter_ in topics["errors"][0] and "one MQTT topic without a comma" in topics["errors"][0]


def test_an_mqtt_broker_that_is_not_there_fails_the_task(connect: ConnectCluster) -> None:
    with reserve_port() as nobody:
        put(connect, "deaf", connector_class="MqttSourceConnector", mqtt_url=f"tcp://127.0.0.1:{nobody.port}",
            mqtt_topics="#", mqtt_client_id="deaf", mqtt_timeout_ms=1, topic="deaf")  # fmt: skip
        with pytest.raises(ConnectFailed, match="no MQTT broker lets us in at tcp://127.0.0.1:"):
            wait_until(lambda: connect.wait_until_running("deaf"), PATIENCE, "the task to fail")
    ask(connect, "DELETE", "/connectors/deaf")


@pytest.fixture(scope="module")
def database() -> Iterator[PostgreSQL]:
    with PostgreSQL() as server:
        yield server


def on(server: PostgreSQL) -> dict[str, object]:
    """Settings of both JDBC connectors."""
    where = f"jdbc:postgresql://{server.host}:{server.port}/{server.database}"
    login = {"connection_url": where, "connection_user": server.user, "connection_password": server.password}
    return login | {"value_converter": JSON, "value_converter_schemas_enable": False}


def wait_for_ids(cluster: Cluster, topic: str, ids: list[int]) -> None:
    def found() -> list[int]:
        if topic not in cluster.describe(groups=False).topics:
            return []
        return [json.loads(value)["id"] for value in CheckContext(cluster).values(topic)]

    wait_until(lambda: found() == ids, PATIENCE, f"{len(ids)} rows in {topic}", last_seen=found, interval=0.3)


def wait_for_failure(connect: ConnectCluster, name: str, reason: str) -> None:
    """Wait until it has failed for this reason; an earlier failure may still be told meanwhile."""

    def told() -> str:
        try:
            connect.wait_until_running(name)
        except ConnectFailed as error:
            return str(error)
        return "it runs"

    wait_until(lambda: re.search(reason, told()), PATIENCE, f"{name} to fail", last_seen=told)


def test_the_jdbc_source_sends_each_row_while_database_and_columns_come_and_go(
    cluster: Cluster, connect: ConnectCluster, database: PostgreSQL
) -> None:
    tell(database, "DROP TABLE IF EXISTS car", "CREATE TABLE car (id INT, at TIMESTAMPTZ, speed REAL)",
         "INSERT INTO car SELECT n, '2026-01-01', n FROM generate_series(1, 25) n")  # fmt: skip
    database.kill()
    put(connect, "cars", connector_class="JdbcSourceConnector", table="car", topic_prefix="all-", batch_max_rows=10,
        timestamp_column_name="at", incrementing_column_name="id", poll_interval_ms=200, **on(database))  # fmt: skip
    logs = "no database answers at jdbc:postgresql://"
    wait_until(lambda: any(logs in worker.logs() for worker in connect.workers), PATIENCE, "the connector to miss the database")
    database.start()
    wait_for_ids(cluster, "all-car", [*range(1, 26)])
    assert json.loads(CheckContext(cluster).values("all-car")[0]) == {"id": 1, "at": "2026-01-01T00:00:00Z", "speed": 1.0}

    database.kill()
    database.start()
    tell(database, "ALTER TABLE car ADD COLUMN colour TEXT", "INSERT INTO car VALUES (26, '2026-01-02', 1, 'red')")
    wait_for_ids(cluster, "all-car", [*range(1, 27)])
    assert json.loads(CheckContext(cluster).values("all-car")[-1])["colour"] == "red"

    tell(database, "ALTER TABLE car RENAME COLUMN at TO since", "INSERT INTO car VALUES (27, '2026-01-03')")
    wait_for_failure(connect, "cars", 'the database refused: ERROR: column "at" does not exist')
    tell(database, "ALTER TABLE car RENAME COLUMN since TO at")
    ask(connect, "POST", "/connectors/cars/restart?includeTasks=true")
    wait_for_ids(cluster, "all-car", [*range(1, 28)])
    ask(connect, "DELETE", "/connectors/cars")


def test_the_jdbc_sink_leaves_the_table_right(cluster: Cluster, connect: ConnectCluster, database: PostgreSQL) -> None:
    tell(database, "DROP TABLE IF EXISTS copy", "CREATE TABLE copy (id INT PRIMARY KEY, at TIMESTAMPTZ, name TEXT)")
    create(cluster, "copy", 1, 1)

    def send(number: int, **row: object) -> None:
        value = json.dumps({"id": number, **row}) if row else None
        with Producer(cluster.client_config()) as producer:
            producer.produce("copy", value, str(number))

    def wait_for_rows(*rows: tuple[int, str]) -> None:
        def copied() -> list[tuple[object, ...]]:
            return tell(database, "SELECT id, name FROM copy ORDER BY id")

        wait_until(lambda: copied() == [*rows], PATIENCE, "the rows", last_seen=copied)

    sink = {"connector_class": "JdbcSinkConnector", "topics": "copy", "delete_enabled": True, **on(database)}
    send(1, name="one", at="2026-01-01T00:00:00.123456Z")
    send(2, name="two")
    put(connect, "rows", **sink)
    wait_for_rows((1, "one"), (2, "two"))
    send(1, name="uno")
    wait_for_failure(connect, "rows", "the database refused: ERROR: duplicate key value")
    put(connect, "rows", **sink, insert_mode="upsert")
    wait_for_rows((1, "uno"), (2, "two"))

    database.kill()
    send(2)
    database.start()
    wait_for_rows((1, "uno"))
    send(3, name="three", phone="555")
    wait_for_failure(connect, "rows", 'column "phone" of relation "copy" does not exist')
    tell(database, "ALTER TABLE copy ADD COLUMN phone TEXT")
    ask(connect, "POST", "/connectors/rows/restart?includeTasks=true")
    wait_for_rows((1, "uno"), (3, "three"))
    ask(connect, "DELETE", "/connectors/rows")


@pytest.fixture(scope="module")
def registry(cluster: Cluster) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(cluster) as registry:
        yield registry


def avro(url: str) -> dict[str, object]:
    """Settings of a connector whose values are Avro, with their schemas in the registry at this URL."""
    return {"value_converter": "kafkalab.AvroConverter", "value_converter_schema_registry_url": url}


def avro_values(cluster: Cluster, registry: SchemaRegistry, topic: str) -> list[dict[str, object]]:
    """The values of a topic as Confluent's deserializer reads them."""
    if topic not in cluster.describe(groups=False).topics:
        return []
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    where = SerializationContext(topic, MessageField.VALUE)
    return [read(record.value(), where) for record in CheckContext(cluster).records(topic)]


def wait_for_avro(cluster: Cluster, registry: SchemaRegistry, topic: str, count: int) -> list[dict[str, object]]:
    """The values of a topic when there are so many."""
    return wait_until(
        lambda: values if len(values := avro_values(cluster, registry, topic)) == count else None,
        PATIENCE,
        f"{count} values in {topic}",
        last_seen=lambda: avro_values(cluster, registry, topic),
        interval=0.3,
    )


def test_a_source_registers_its_schema_and_a_sink_reads_by_it(
    cluster: Cluster, connect: ConnectCluster, database: PostgreSQL, registry: SchemaRegistry
) -> None:
    tell(database, "DROP TABLE IF EXISTS lorry, \"avro-lorry\"", "CREATE TABLE lorry (id INT PRIMARY KEY, at TIMESTAMPTZ, name TEXT)",
         "CREATE TABLE \"avro-lorry\" (LIKE lorry INCLUDING ALL)", "INSERT INTO lorry VALUES (1, '2026-01-01', 'one')")  # fmt: skip
    keys = {"transforms": "make,take", "transforms_make_type": f"{SMT}.ValueToKey", "transforms_make_fields": "id",
            "transforms_take_type": f"{SMT}.ExtractField$Key", "transforms_take_field": "id"}  # fmt: skip
    source = {"connector_class": "JdbcSourceConnector", "table": "lorry", "topic_prefix": "avro-", "poll_interval_ms": 200,
              "timestamp_column_name": "at", "incrementing_column_name": "id", **keys, **on(database), **avro(registry.url)}  # fmt: skip
    put(connect, "lorries", **source)
    put(connect, "lorry-rows", connector_class="JdbcSinkConnector", topics="avro-lorry", **(on(database) | avro(registry.url)))
    one = {"id": 1, "at": "2026-01-01T00:00:00Z", "name": "one"}
    assert wait_for_avro(cluster, registry, "avro-lorry", 1) == [one]
    wait_until(
        lambda: tell(database, 'SELECT name FROM "avro-lorry"') == [("one",)], PATIENCE, "the row", ignore=(psycopg.Error,)
    )

    tell(database, 'ALTER TABLE "avro-lorry" ADD COLUMN tons REAL', "ALTER TABLE lorry ADD COLUMN tons REAL",
         "INSERT INTO lorry VALUES (2, '2026-01-02', 'two', 7.5)")  # fmt: skip
    assert wait_for_avro(cluster, registry, "avro-lorry", 2) == [
        one,
        {"id": 2, "at": "2026-01-02T00:00:00Z", "name": "two", "tons": 7.5},
    ]
    wait_until(lambda: tell(database, 'SELECT tons FROM "avro-lorry"') == [(None,), (7.5,)], PATIENCE, "the other row")
    client = SchemaRegistryClient({"url": registry.url})
    assert client.get_versions("avro-lorry-value") == [1, 2]

    tell(database, "ALTER TABLE lorry ALTER COLUMN name TYPE INT USING 0", "INSERT INTO lorry VALUES (3, '2026-01-03', 3)")
    wait_for_failure(connect, "lorries", r"DataException: the schema registry refused \(409\)")
    assert client.get_versions("avro-lorry-value") == [1, 2]
    for name in ("lorries", "lorry-rows"):
        ask(connect, "DELETE", f"/connectors/{name}")


class OneSchema(BaseHTTPRequestHandler):
    """A schema registry that gives each schema the id 7."""

    def do_POST(self) -> None:
        answer = b'{"id": 7}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def test_bytes_that_are_no_avro_are_dead_letters_and_an_absent_registry_is_waited_for(
    cluster: Cluster, connect: ConnectCluster, tmp_path: Path
) -> None:
    create(cluster, "mixed", 1, 1)
    with Producer(cluster.client_config()) as producer:
        producer.produce("mixed", "oops")
    lines = tmp_path / "lines.txt"
    lines.write_text("one\n")
    with reserve_port() as nobody:
        values = avro(f"http://{HOST}:{nobody.port}")
        put(connect, "mixed", connector_class=SINK, topics="mixed", file=str(tmp_path / "mixed.txt"), **values,
            errors_tolerance="all", errors_deadletterqueue_topic_name="mixed-dead",
            errors_deadletterqueue_topic_replication_factor=1)  # fmt: skip
        put(connect, "patient", connector_class=SOURCE, topic="patient", file=str(lines), **values, errors_retry_timeout=-1,
            errors_retry_delay_max_ms=300)  # fmt: skip
        put(connect, "hasty", connector_class=SOURCE, topic="hasty", file=str(lines), **values)
        wait_for(cluster, "mixed-dead", {"oops"})
        wait_for_failure(connect, "hasty", "RetriableException: no schema registry answers at http")
        with HTTPServer((HOST, nobody.port), OneSchema) as late:
            threading.Thread(target=late.serve_forever).start()
            wait_for(cluster, "patient", {"\0\0\0\0\7\6one"})
            late.shutdown()
    for name in ("mixed", "patient", "hasty"):
        ask(connect, "DELETE", f"/connectors/{name}")


def captured(server: PostgreSQL) -> dict[str, object]:
    """Settings of a connector that captures the changes of the table boat."""
    login = {"user": server.user, "password": server.password, "hostname": server.host, "port": server.port}
    return {"connector_class": "io.debezium.connector.postgresql.PostgresConnector", "plugin_name": "pgoutput",
            "topic_prefix": "cdc", "table_include_list": "public.boat", "database_dbname": server.database,
            "time_precision_mode": "connect", "retriable_restart_connector_wait_ms": 500,
            **{f"database_{name}": value for name, value in login.items()}}  # fmt: skip


def test_captured_rows_keep_their_types_while_columns_and_database_come_and_go(
    cluster: Cluster, connect: ConnectCluster, database: PostgreSQL, registry: SchemaRegistry
) -> None:
    def newest(count: int) -> object:
        return wait_for_avro(cluster, registry, "cdc.public.boat", count)[-1]["after"]

    tell(database, "DROP TABLE IF EXISTS boat", "CREATE TABLE boat (id INT PRIMARY KEY, built DATE, tons NUMERIC(6, 2))",
         "INSERT INTO boat VALUES (1, '2026-01-01', 12.50)")  # fmt: skip
    boats = captured(database) | avro(registry.url)
    database.kill()
    with pytest.raises(AssertionError, match="Unable to connect|Error while validating connector config"):
        put(connect, "boats", **boats)
    assert "boats" not in connect.states()
    database.start()
    put(connect, "boats", **boats)
    assert newest(1) == {"id": 1, "built": date(2026, 1, 1), "tons": Decimal("12.50")}

    tell(database, "ALTER TABLE boat ADD COLUMN name TEXT", "UPDATE boat SET name = 'Ann'")
    assert newest(2) == {"id": 1, "built": date(2026, 1, 1), "tons": Decimal("12.50"), "name": "Ann"}
    tell(database, "ALTER TABLE boat DROP COLUMN tons", "INSERT INTO boat VALUES (2, '2026-01-02', 'Bob')")
    assert newest(3) == {"id": 2, "built": date(2026, 1, 2), "name": "Bob"}
    database.kill()
    database.start()
    tell(database, "INSERT INTO boat VALUES (3, NULL, 'Cid')")
    wait_until(  # not for a fourth value: Bob comes again if his offset wasn't stored yet, which is at least once
        lambda: avro_values(cluster, registry, "cdc.public.boat")[-1]["after"] == {"id": 3, "built": None, "name": "Cid"},
        PATIENCE,
        "the row of the database that is back",
        last_seen=lambda: avro_values(cluster, registry, "cdc.public.boat")[-1],
    )
    assert connect.states()["boats task 0"] == "RUNNING"

    tell(database, "ALTER TABLE boat ALTER COLUMN name TYPE INT USING 0", "INSERT INTO boat VALUES (4, NULL, 4)")
    wait_for_failure(connect, "boats", r"DataException: the schema registry refused \(409\)")
    ask(connect, "DELETE", "/connectors/boats")


def test_settings_of_the_jdbc_connectors_are_checked_field_by_field(connect: ConnectCluster) -> None:
    for kind, wrong, missing in (
        ("Source", {"connection.url": "jdbc:mysql://x", "poll.interval.ms": 0, "table": ""}, "topic.prefix"),
        ("Sink", {"connection.user": "", "insert.mode": "update", "delete.enabled": "perhaps"}, "connection.url"),
    ):
        config = wrong | {"connector.class": f"Jdbc{kind}Connector", "name": "wrong", "topics": "x"}
        told = ask(connect, "PUT", f"/connector-plugins/Jdbc{kind}Connector/config/validate", config)
        assert {*wrong, missing} <= {field["value"]["name"] for field in told["configs"] if field["value"]["errors"]}


def test_a_connector_class_that_no_worker_has_is_named(connect: ConnectCluster) -> None:
    with pytest.raises(
        AssertionError, match="Failed to find any class that implements Connector and which name matches Nobody"
    ):
        put(connect, "nobody", connector_class="Nobody")


def test_workers_listen_on_loopback_only(connect: ConnectCluster) -> None:
    worker = next(worker for worker in connect.workers if worker.alive)
    listening = [c.laddr.ip for c in psutil.Process(worker.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert listening and set(listening) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def test_it_knows_the_connectors_in_its_folder(connect: ConnectCluster) -> None:
    known = {plugin["class"] for plugin in ask(connect, "GET", "/connector-plugins?connectorsOnly=false")}
    assert {SOURCE, SINK, "io.debezium.connector.postgresql.PostgresConnector", "kafkalab.AvroConverter"} <= known
    assert any(path.name.startswith("connect-file") for path in connect.plugins.iterdir())


def test_a_plugin_that_is_not_to_be_had_is_named(connect: ConnectCluster) -> None:
    before = set(connect.plugins.iterdir())
    with pytest.raises(ValueError, match="there is no plug-in 'debezium' here; there are avro-converter, debezium-postgres, "):
        connect.add_plugin("debezium")
    with pytest.raises(JavaError, match=r"Same doesn't compile:\n-+\n1\. ERROR in Same\.java"):
        connect.compile_plugin(SAME.replace("return record", "return records"))
    with pytest.raises(JavaError, match="the source has no `public class`"):
        connect.compile_plugin("class Same {}")
    assert set(connect.plugins.iterdir()) == before


def test_a_worker_that_cannot_start_says_why_and_leaves_nothing(cluster: Cluster) -> None:
    before = own_runs()
    connect = ConnectCluster(cluster, settings={"key.converter": "not.there.Converter"})
    with pytest.raises(ConnectFailed, match=r"worker 0 ended by itself: .*not\.there\.Converter"):
        connect.start()
    assert own_runs() == before
    with pytest.raises(ConnectFailed, match="no Connect worker runs"):
        connect.url  # noqa: B018


def test_too_little_memory_for_workers_is_said_before_one_starts(
    cluster: Cluster, connect: ConnectCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "available_memory", lambda: 200 << 20)
    with pytest.raises(NotEnoughResources, match="Connect with 2 workers needs about 440 MB of memory, but only 200 MB"):
        ConnectCluster(cluster, workers=2).start()
    with pytest.raises(NotEnoughResources, match="one more Connect worker needs about 220 MB"):
        connect.add_worker()


def test_a_forked_child_leaves_it_alone(connect: ConnectCluster) -> None:
    alive = [worker.alive for worker in connect.workers]
    in_a_fork(connect.stop)
    assert any(alive) and [worker.alive for worker in connect.workers] == alive


def test_it_ends_with_its_cluster(cluster: Cluster, connect: ConnectCluster) -> None:
    workers, folder = connect.workers, connect.plugins
    assert len(workers) == 2 and folder.exists()
    cluster.stop()
    assert not any(worker.alive for worker in workers) and not folder.exists() and connect.workers == ()
