"""The registry killed in mid-run, and all that can be wrong with a schema, an id, a header, a subject, a reference."""

from __future__ import annotations

import json
import shutil
import struct
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, SerializingProducer, TopicPartition
from confluent_kafka.error import ValueSerializationError
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

import kafkalab.distribution.jars as jars_module
from kafkalab import Cluster, SchemaRegistry, wait_until
from kafkalab.cluster.offsets import watermarks
from kafkalab.distribution.registry import ensure_registry, registry_archive
from kafkalab.errors import DownloadError, HashMismatch, RegistryFailed
from support import PATIENCE, lives

pytestmark = pytest.mark.cluster

SCHEMA = json.dumps({"type": "record", "name": "Employee", "fields": [{"name": "firstName", "type": "string"}]})
IN_FAULTS = SerializationContext("faults", MessageField.VALUE)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One of its own: the consumers of a registry that was killed stay members of their groups for 45 s."""
    with Cluster(1, backend="local") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def registry(cluster: Cluster) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(cluster) as registry:
        yield registry


@pytest.fixture
def client(registry: SchemaRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url, "max.retries": 0})


def test_killed_in_mid_run(cluster: Cluster, registry: SchemaRegistry, client: SchemaRegistryClient) -> None:
    """A producer in full swing does not notice; its records can all be read when the registry is back."""
    outcomes: list[KafkaError | None] = []
    enough, killed = threading.Event(), threading.Event()
    serialize = AvroSerializer(client, SCHEMA)
    producer = SerializingProducer({**cluster.client_config(acks="all"), "value.serializer": serialize})

    def run() -> None:
        number = 0
        while not (killed.is_set() and number % 100 == 0 and enough.is_set()):
            producer.produce(
                "mid-run", value={"firstName": f"Bob {number}"}, on_delivery=lambda error, _: outcomes.append(error)
            )
            producer.poll(0.001)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: len(outcomes) > 100, PATIENCE, "some records", last_seen=lambda: len(outcomes))
    registry.kill()
    killed.set()
    before = len(outcomes)
    wait_until(
        lambda: len(outcomes) > before + 100, PATIENCE, "more records without a registry", last_seen=lambda: len(outcomes)
    )
    enough.set()
    thread.join()
    assert producer.flush(PATIENCE) == 0
    assert set(outcomes) == {None}
    newcomer = AvroDeserializer(SchemaRegistryClient({"url": registry.url, "max.retries": 0}), SCHEMA)
    with pytest.raises(httpx2.TransportError):
        newcomer(serialize({"firstName": "Ann"}, IN_FAULTS), IN_FAULTS)

    registry.start()
    reader = Consumer(cluster.client_config(group_id="mid-run"))
    marks = watermarks(cluster, "mid-run")
    reader.assign([TopicPartition("mid-run", partition, 0) for partition in marks])
    seen: list[str] = []
    wait_until(
        lambda: seen.extend(newcomer(m.value(), IN_FAULTS)["firstName"] for m in reader.consume(500, 0.1)) or len(seen) == len(outcomes),
        PATIENCE, "all records", last_seen=lambda: len(seen), interval=0,
    )  # fmt: skip
    reader.close()
    assert sorted(seen) == sorted(f"Bob {number}" for number in range(len(outcomes)))


def test_unknown_id(client: SchemaRegistryClient) -> None:
    with pytest.raises(SchemaRegistryError) as unknown:
        AvroDeserializer(client, SCHEMA)(struct.pack(">bI", 0, 987654) + b"\x06Bob", IN_FAULTS)
    assert unknown.value.http_status_code == 404


@pytest.mark.parametrize("value", [b"\7\0\0\0\1\x06Bob", b"Bob", b'{"firstName": "Bob"}'])
def test_wrong_magic_byte(client: SchemaRegistryClient, value: bytes) -> None:
    with pytest.raises(SerializationError):
        AvroDeserializer(client, SCHEMA)(value, IN_FAULTS)


def test_a_record_that_is_cut_off(client: SchemaRegistryClient) -> None:
    whole = AvroSerializer(client, SCHEMA)({"firstName": "Bob"}, IN_FAULTS)
    with pytest.raises(EOFError):
        AvroDeserializer(client, SCHEMA)(whole[:-1], IN_FAULTS)


@pytest.mark.parametrize("text", ["this is no schema", '{"type": "recrod"}', "", "{"])
def test_text_that_is_no_schema(client: SchemaRegistryClient, text: str) -> None:
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("nonsense", Schema(text, "AVRO"))
    assert refused.value.http_status_code == 422
    assert "nonsense" not in client.get_subjects()


def test_a_subject_or_version_that_does_not_exist(client: SchemaRegistryClient) -> None:
    client.register_schema("somebody", Schema(SCHEMA, "AVRO"))
    for question in (
        lambda: client.get_latest_version("nobody"),
        lambda: client.get_versions("nobody"),
        lambda: client.get_version("somebody", 77),
        lambda: client.lookup_schema("nobody", Schema(SCHEMA, "AVRO")),
        lambda: client.delete_subject("nobody"),
    ):
        with pytest.raises(SchemaRegistryError) as missing:
            question()
        assert missing.value.http_status_code == 404


def test_a_reference_that_is_missing(client: SchemaRegistryClient) -> None:
    order = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "product", "type": "com.shop.Product"}]})
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("orders", Schema(order, "AVRO", [SchemaReference("com.shop.Product", "product", 1)]))
    assert refused.value.http_status_code == 422
    assert "orders" not in client.get_subjects()


def test_a_producer_with_an_incompatible_schema_sends_nothing(cluster: Cluster, client: SchemaRegistryClient) -> None:
    client.register_schema("strict-value", Schema(SCHEMA, "AVRO"))
    renamed = AvroSerializer(client, SCHEMA.replace("firstName", "fName"))
    producer = SerializingProducer({**cluster.client_config(), "value.serializer": renamed})
    with pytest.raises(ValueSerializationError, match="409"):
        producer.produce("strict", value={"fName": "Bob"})
    assert producer.flush(PATIENCE) == 0
    assert "strict" not in cluster.describe(groups=False).topics


def test_an_answer_is_left_alone_once_it_is_on_its_way(registry: SchemaRegistry) -> None:
    """Else two threads meet at its headers now and then, and it never comes."""
    with httpx2.Client(timeout=10) as client:
        answers = [client.get(f"{registry.url}/associations/resources/-/nobody-{n}") for n in range(50)]
    assert {(answer.status_code, answer.headers.get("Content-Encoding")) for answer in answers} == {(404, "identity")}


# -- the registry itself --------------------------------------------------------------------------------------------


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path))
    return tmp_path


def test_not_in_the_cache_and_no_network(empty_cache: Path, no_network: None) -> None:
    with pytest.raises(DownloadError, match=r"apicurio-registry-app.*Is there a network\?"):
        ensure_registry()
    assert not list(empty_cache.glob("registries/*"))


def test_an_archive_that_is_not_the_locked_one(empty_cache: Path, no_network: None) -> None:
    """A file of the right name but with other content is not unpacked."""
    [locked] = jars_module.locked_jars("registry")
    other = jars_module.jars_dir("registry") / locked.file_name
    other.parent.mkdir(parents=True)
    with tarfile.open(other, "w:gz") as archive:
        archive.add(__file__, "quarkus-run.jar")
    with pytest.raises((DownloadError, HashMismatch)):
        ensure_registry()
    assert not list(empty_cache.glob("registries/*"))


def test_what_is_damaged_in_the_cache_is_an_error_with_its_log(
    cluster: Cluster, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAFKALAB_CACHE")
    whole, made = ensure_registry(), registry_archive().folder
    monkeypatch.setenv("KAFKALAB_CACHE", str(empty_cache))
    copy = empty_cache / "registries" / whole.name
    shutil.copytree(whole, copy, copy_function=lambda a, b: Path(b).symlink_to(a))
    (empty_cache / "archives").mkdir()
    (empty_cache / "archives" / made.name).symlink_to(made)  # else one is made first, for 40 s of a processor
    (copy / "quarkus/generated-bytecode.jar").unlink()
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with pytest.raises(RegistryFailed, match=r"(?s)ended by itself: .*GeneratedMain"):
        SchemaRegistry(cluster).start()
    assert {p.pid for p in psutil.Process().children(recursive=True) if lives(p)} <= before
