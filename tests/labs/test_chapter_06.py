"""The labs of chapter 06: wrong answers are told apart from the right one, with a sentence that helps."""

from __future__ import annotations

import copy
import functools
import json
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kafkalab import Cluster, SchemaRegistry

from .support import Verdict, create, put

pytestmark = pytest.mark.cluster


class Place(NamedTuple):
    """The cluster, its registry and a client of that."""

    cluster: Cluster
    registry: SchemaRegistry
    client: SchemaRegistryClient

    def send(self, topic: str, values: list[bytes], keys: list[bytes | None] | None = None) -> None:
        put(self.cluster, topic, [(key, value, 0) for key, value in zip(keys or [None] * len(values), values, strict=True)])

    def commit(self, group: str, topic: str, offset: int) -> None:
        consumer = Consumer(self.cluster.client_config(group_id=group))
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        consumer.close()

    def frame(self, subject: str, payload: bytes) -> bytes:
        return struct.pack(">bI", 0, self.client.get_latest_version(subject).schema_id) + payload


@pytest.fixture(scope="module")
def registry(cluster: Cluster) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(cluster) as registry:
        yield registry


@pytest.fixture
def place(cluster: Cluster, registry: SchemaRegistry) -> Iterator[Place]:
    """A registry that knows nothing, and a cluster without the topics and groups of earlier tests."""
    kept = set(cluster.describe(groups=False).topics)  # the registry's own
    yield Place(cluster, registry, SchemaRegistryClient({"url": registry.url}))
    admin = AdminClient(cluster.client_config())
    view = cluster.describe()
    groups = [name for name, group in view.groups.items() if not group.members]
    for deleted in admin.delete_consumer_groups(groups).values() if groups else ():
        deleted.result()
    topics = [name for name in view.topics if name not in kept]
    for deleted in admin.delete_topics(topics).values() if topics else ():
        deleted.result()
    cluster.wait_for(lambda view: not set(topics) & view.topics.keys(), "the topics to be gone")
    client = SchemaRegistryClient({"url": registry.url})
    client.set_compatibility(level="NONE")
    # What refers to others goes first.
    for subject in sorted(client.get_subjects(), key=lambda name: name.endswith(".proto")):
        forget(client, subject)
    client.set_compatibility(level="BACKWARD")


def forget(client: SchemaRegistryClient, subject: str) -> None:
    """Delete a subject for good: that is a second step."""
    client.delete_subject(subject)
    client.delete_subject(subject, permanent=True)


def record(*fields: str | dict) -> dict:
    return {"type": "record", "name": "Employee", "fields": [f if isinstance(f, dict) else {"name": f, "type": "string"} for f in fields]}


def avro(schema: dict) -> Schema:
    return Schema(json.dumps(schema), "AVRO")


AGE = {"name": "age", "type": "int", "default": -1}
V1, V2 = record("firstName", "lastName"), record("firstName", "lastName", AGE)
RENAMED = record("fName", "lName", AGE)
WITH_ALIASES = record({"name": "fName", "type": "string", "aliases": ["firstName"]}, {"name": "lName", "type": "string", "aliases": ["lastName"]}, AGE)


def test_rest(place: Place, verdict: Verdict) -> None:
    client, given = place.client, {"registry": place.registry}
    verdict.says("Give check() your answer as registry=", "06_rest", place.cluster)
    verdict.says("There is no subject 'Employee' yet. The registry's subjects: none.", "06_rest", place.cluster, **given)
    client.register_schema("Employee", avro(V1))
    verdict.says("Employee has 1 version", "06_rest", place.cluster, **given)
    client.register_schema("Employee", avro(V2))
    client.register_schema("Employee2", avro(V2))
    second = client.get_version("Employee", 2).schema_id
    verdict.says("Employee2 has another id", "06_rest", place.cluster, **given, id_of_version_2=second)
    forget(client, "Employee2")
    client.register_schema("Employee2", avro(V1))
    verdict.says("For all subjects the level is BACKWARD", "06_rest", place.cluster, **given, id_of_version_2=second)
    client.set_compatibility(level="NONE")
    verdict.says("A subject may have a level of its own", "06_rest", place.cluster, **given, id_of_version_2=second)
    client.set_compatibility("Employee", "BACKWARD")
    verdict.passes("06_rest", place.cluster, **given, id_of_version_2=second)
    verdict.says("is not the id of version 2", "06_rest", place.cluster, **given, id_of_version_2=second + 100)
    verdict.says("Give check() your answer as id_of_version_2=", "06_rest", place.cluster, **given)


def test_versions_the_wrong_way_round(place: Place, verdict: Verdict) -> None:
    for schema in (V2, V1):
        place.client.register_schema("Employee", avro(schema))
    verdict.says("Which of them knows the age?", "06_rest", place.cluster, registry=place.registry)


def test_evolution(place: Place, verdict: Verdict) -> None:
    client, given = place.client, {"registry": place.registry, "refused": 409, "compatible": False}
    for schema in (V1, V2):
        client.register_schema("Employee", avro(schema))
    verdict.says("The last version has the fields firstName, lastName, age", "06_evolution", place.cluster, **given)
    verdict.says("Give check() your answer as refused=", "06_evolution", place.cluster, registry=place.registry)
    verdict.says("not what a registry answers", "06_evolution", place.cluster, **{**given, "refused": 200})
    verdict.says("Give check() compatible=", "06_evolution", place.cluster, **{**given, "compatible": True})
    client.register_schema("Employee", avro(WITH_ALIASES))
    verdict.passes("06_evolution", place.cluster, **given)


def test_new_names_that_were_forced(place: Place, verdict: Verdict) -> None:
    place.client.register_schema("Employee", avro(V1))
    place.client.set_compatibility("Employee", "NONE")
    place.client.register_schema("Employee", avro(RENAMED))
    given = {"registry": place.registry, "refused": 409, "compatible": False}
    verdict.says("without a word of what it was called before", "06_evolution", place.cluster, **given)


def test_names_by_default(place: Place, verdict: Verdict) -> None:
    """A default makes the registry accept new names, but nobody is called so any more."""
    emptied = record(*({"name": name, "type": "string", "default": "", "aliases": [other]} for name, other in (("fName", "firstName"), ("lName", "name"))))
    for schema in (V1, emptied):
        place.client.register_schema("Employee", avro(schema))
    verdict.says("Bob Jones of version 1 is called Bob .", "06_evolution", place.cluster, registry=place.registry, refused=409, compatible=False)


def test_a_registry_that_was_killed(place: Place, verdict: Verdict) -> None:
    place.registry.kill()
    verdict.says("The registry does not answer. Is it running?", "06_rest", place.cluster, registry=place.registry)
    place.registry.restart()


# -- 06_avro, 06_scenario -------------------------------------------------------------------------------------------

PHONE = {"type": "record", "name": "PhoneNumber", "fields": [{"name": n, "type": "string"} for n in ("countryCode", "areaCode", "prefix", "number")]}
EMPLOYEE = record("firstName", "lastName", AGE, {"name": "phoneNumber", "type": PHONE})
BOB = {"firstName": "Bob", "lastName": "Jones", "age": 35, "phoneNumber": {"countryCode": "1", "areaCode": "301", "prefix": "555", "number": "1234"}}
LONG = struct.Struct(">q").pack


def serializer(place: Place, topic: str, schema: dict) -> Callable[[dict], bytes]:
    serialize = AvroSerializer(place.client, json.dumps(schema))
    return lambda value: serialize(value, SerializationContext(topic, MessageField.VALUE))


def employees(place: Place, values: list[bytes], keys: list[bytes | None]) -> None:
    create(place.cluster, "new-employees", 1)
    place.send("new-employees", values, keys)
    place.commit("KafkaExampleAvroConsumer", "new-employees", len(values))


KEYS = [LONG(n) for n in range(1, 100)]


def test_avro(place: Place, verdict: Verdict) -> None:
    given = {"registry": place.registry}
    verdict.says("There is no topic 'new-employees' yet", "06_avro", place.cluster, **given)
    create(place.cluster, "new-employees", 1)
    verdict.says("The topic new-employees is empty", "06_avro", place.cluster, **given)
    write = serializer(place, "new-employees", EMPLOYEE)
    place.send("new-employees", [write(BOB)] * 99, KEYS)
    verdict.says("has committed nothing in new-employees", "06_avro", place.cluster, **given)
    place.commit("KafkaExampleAvroConsumer", "new-employees", 98)
    verdict.says("is 1 record behind the end", "06_avro", place.cluster, **given)
    place.commit("KafkaExampleAvroConsumer", "new-employees", 99)
    verdict.passes("06_avro", place.cluster, **given)
    place.send("new-employees", [write(BOB)], [LONG(7)])
    verdict.says("There are 100 records, and 99 keys. Was it sent twice?", "06_avro", place.cluster, **given)


@pytest.mark.parametrize(
    ("sentence", "change"),
    [
        ("A Long has eight", lambda write, values, keys: (values, [b"1", *keys[1:]])),
        ("There are the keys 0 to 98, 99 different ones", lambda write, values, keys: (values, [LONG(n) for n in range(99)])),
        ("has no header", lambda write, values, keys: ([json.dumps(BOB).encode(), *values[1:]], keys)),
        ("that the registry does not know", lambda write, values, keys: ([b"\0\0\x0f\0\0" + values[0][5:], *values[1:]], keys)),
        ("cannot be read as its schema says", lambda write, values, keys: ([values[0][:9], *values[1:]], keys)),
        ("At offset 0, age is 36", lambda write, values, keys: ([write({**BOB, "age": 36}), *values[1:]], keys)),
    ],
)
def test_avro_that_is_wrong(place: Place, verdict: Verdict, sentence: str, change: Callable) -> None:
    write = serializer(place, "new-employees", EMPLOYEE)
    employees(place, *change(write, [write(BOB)] * 99, KEYS))
    verdict.says(sentence, "06_avro", place.cluster, registry=place.registry)


def test_avro_with_two_schemas(place: Place, verdict: Verdict) -> None:
    other = copy.deepcopy(EMPLOYEE)
    other["fields"].append({"name": "nickName", "type": ["null", "string"], "default": None})
    first, second = (serializer(place, "new-employees", schema)(BOB) for schema in (EMPLOYEE, other))
    employees(place, [first] * 98 + [second], KEYS)
    verdict.says("2 different schema ids", "06_avro", place.cluster, registry=place.registry)


def test_scenario(place: Place, verdict: Verdict) -> None:
    given = {"registry": place.registry, "ages": [42, -1]}
    for topic in ("employees-v2", "employees-stored"):
        create(place.cluster, topic, 1)
    verdict.says("The topic employees-v2 is empty", "06_scenario", place.cluster, **given)
    place.send("employees-v2", [serializer(place, "employees-v2", V2)({"firstName": "Bob", "lastName": "Jones", "age": 42})])
    place.send("employees-stored", [serializer(place, "employees-stored", V1)({"firstName": "Bob", "lastName": "Jones"})])
    verdict.passes("06_scenario", place.cluster, **given)
    verdict.says("with which schema do you read the second one?", "06_scenario", place.cluster, **{**given, "ages": [42, 42]})
    verdict.says("Give check() your answer as ages=", "06_scenario", place.cluster, registry=place.registry)
    place.send("employees-v2", [serializer(place, "employees-v2", V2)({"firstName": "Bob", "lastName": "Jones", "age": 42})])
    verdict.says("employees-v2 holds 2 records; one is enough", "06_scenario", place.cluster, **given)


def test_scenario_that_is_wrong(place: Place, verdict: Verdict) -> None:
    given = {"registry": place.registry, "ages": [42, -1]}
    for topic in ("employees-v2", "employees-stored"):
        create(place.cluster, topic, 1)
        place.send(topic, [serializer(place, topic, V2)({"firstName": "Ann", "lastName": "Jones", "age": 41})])
    verdict.says("The age in employees-v2 is 41", "06_scenario", place.cluster, **given)
    verdict.says("What was stored has an age", "06_scenario", place.cluster, **given)


# -- 06_protobuf, 06_generic, 06_order ------------------------------------------------------------------------------

MESSAGE = 'syntax = "proto3";\npackage com.codingharbour.protobuf;\nmessage SimpleMessage {\n  string content = 1;\n  string date_time = 2;\n}\n'
PRODUCT = 'syntax = "proto3";\npackage com.codingharbour.protobuf;\nmessage Product {\n  int32 product_id = 1;\n  string name = 2;\n  string description = 3;\n}\n'
ORDER = (
    'syntax = "proto3";\npackage com.codingharbour.protobuf;\nimport "product.proto";\n'
    "message Order {\n  int64 order_id = 1;\n  int64 date_time = 2;\n  repeated Product product = 3;\n}\n"
)


def text(number: int, value: str) -> bytes:
    """A text field, as Protobuf writes it."""
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def order(number: int, *names: str) -> bytes:
    products = (b"\x08\x01" + (text(2, name) if name else b"") for name in names)
    return b"\0\x08" + bytes([number + 1]) + b"\x10\x02" + b"".join(b"\x1a" + bytes([len(p)]) + p for p in products)


HELLO = b"\0" + text(1, "Hello world") + text(2, "2026-11-22T12:00:00")
SEEN = {"content": "Hello world", "date_time": "2026-11-22T12:00:00"}


def messages(place: Place, payloads: list[bytes], keys: list[bytes | None] | None = None) -> None:
    place.client.register_schema("protobuf-topic-value", Schema(MESSAGE, "PROTOBUF"))
    create(place.cluster, "protobuf-topic", 1)
    place.send("protobuf-topic", [place.frame("protobuf-topic-value", payload) for payload in payloads], keys)


def test_protobuf(place: Place, verdict: Verdict) -> None:
    given = {"registry": place.registry}
    verdict.says("There is no subject 'protobuf-topic-value' yet", "06_protobuf", place.cluster, **given)
    messages(place, [HELLO])
    verdict.says("has committed nothing", "06_protobuf", place.cluster, **given)
    place.commit("protobuf-consumer-group", "protobuf-topic", 1)
    verdict.passes("06_protobuf", place.cluster, **given)
    verdict.says("has committed nothing", "06_generic", place.cluster, **given, seen=SEEN)
    place.commit("generic-protobuf-consumer-group", "protobuf-topic", 1)
    verdict.passes("06_generic", place.cluster, **given, seen=SEEN)
    verdict.says("Do the names come from the schema?", "06_generic", place.cluster, **given, seen={"1": "Hello world"})
    verdict.says("Give check() your answer as seen=", "06_generic", place.cluster, **given)


@pytest.mark.parametrize(
    ("sentence", "payloads", "keys"),
    [
        ("protobuf-topic holds 2 records; one is asked for", [HELLO, HELLO], None),
        ("The record has a key", [HELLO], [b"k"]),
        ("The content is 'Hello'", [b"\0" + text(1, "Hello") + text(2, "2026-11-22T12:00:00")], None),
        ("not as ISO 8601 writes it", [b"\0" + text(1, "Hello world") + text(2, "noon")], None),
        ("A record is no SimpleMessage", [b"\0\xff\xff"], None),
    ],
)
def test_protobuf_that_is_wrong(place: Place, verdict: Verdict, sentence: str, payloads: list[bytes], keys: list | None) -> None:
    messages(place, payloads, keys)
    place.commit("protobuf-consumer-group", "protobuf-topic", len(payloads))
    verdict.says(sentence, "06_protobuf", place.cluster, registry=place.registry)


def test_another_kind_of_schema(place: Place, verdict: Verdict) -> None:
    place.client.register_schema("protobuf-topic-value", avro(V1))
    verdict.says("of type AVRO, not PROTOBUF", "06_protobuf", place.cluster, registry=place.registry)


def orders(place: Place, payloads: list[bytes], text: str = ORDER) -> None:
    place.client.register_schema("product.proto", Schema(PRODUCT, "PROTOBUF"))
    references = [SchemaReference("product.proto", "product.proto", 1)] if "import" in text else []
    place.client.register_schema("orders-value", Schema(text, "PROTOBUF", references))
    create(place.cluster, "orders", 1)
    place.send("orders", [place.frame("orders-value", payload) for payload in payloads])


def test_order(place: Place, verdict: Verdict) -> None:
    orders(place, [order(0), order(1, "a"), order(2, "a", "b")])
    verdict.passes("06_order", place.cluster, registry=place.registry, products=[0, 1, 2])
    verdict.says("You read [0, 1, 1]; the topic holds [0, 1, 2]", "06_order", place.cluster, registry=place.registry, products=[0, 1, 1])
    verdict.says("Give check() your answer as products=", "06_order", place.cluster, registry=place.registry)
    place.send("orders", [place.frame("orders-value", order(3, ""))])
    verdict.says("A product of the order at offset 3 has no name", "06_order", place.cluster, registry=place.registry, products=[0, 1, 2, 1])


def test_order_with_one_product_at_most(place: Place, verdict: Verdict) -> None:
    single = PRODUCT + "message Order {\n  int64 order_id = 1;\n  int64 date_time = 2;\n  Product product = 3;\n}\n"
    orders(place, [order(0), order(1, "a")], single)
    given = {"registry": place.registry, "products": [0, 1]}
    verdict.says("The orders have 0, 1 products: none, one and several are asked for", "06_order", place.cluster, **given)
    verdict.says("The order's schema refers to no other one", "06_order", place.cluster, **given)


# -- 06_json, 06_compare --------------------------------------------------------------------------------------------

STRING = {"type": "string"}
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "firstName": STRING,
        "lastName": STRING,
        "age": {"type": "integer", "minimum": 0},
        "phoneNumber": {"type": "object", "properties": dict.fromkeys(("countryCode", "areaCode", "prefix", "number"), STRING)},
    },
    "required": ["firstName", "lastName", "age"],
}


def json_employees(place: Place, schema: dict, *values: dict) -> None:
    place.client.register_schema("json-employees-value", Schema(json.dumps(schema), "JSON"))
    create(place.cluster, "json-employees", 1)
    place.send("json-employees", [place.frame("json-employees-value", json.dumps(value).encode()) for value in values])


def test_json(place: Place, verdict: Verdict) -> None:
    given = {"registry": place.registry, "refused": 3}
    verdict.says("There is no subject 'json-employees-value' yet", "06_json", place.cluster, **given)
    json_employees(place, JSON_SCHEMA, BOB)
    verdict.passes("06_json", place.cluster, **given)
    verdict.says("2 of 3 were refused", "06_json", place.cluster, **{**given, "refused": 2})
    verdict.says("Give check() your answer as refused=", "06_json", place.cluster, registry=place.registry)
    place.send("json-employees", [place.frame("json-employees-value", json.dumps({**BOB, "age": -1}).encode())])
    verdict.says("The record at offset 1 should have been refused", "06_json", place.cluster, **given)


def without(name: str) -> dict:
    """The schema with one thing less in it."""
    schema = copy.deepcopy(JSON_SCHEMA)
    if name == "required":
        del schema["required"]
    elif name == "minimum":
        del schema["properties"]["age"]["minimum"]
    elif name == "age":
        del schema["properties"]["age"]
    elif name == "areaCode":
        del schema["properties"]["phoneNumber"]["properties"]["areaCode"]
    else:
        schema["properties"]["phoneNumber"] = STRING
    return schema


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("required", "accepts one without a last name"),
        ("age", "accepts one whose age is a text"),
        ("minimum", "accepts one of age -1"),
        ("areaCode", "accepts one whose area code is a number"),
        ("phoneNumber", "refuses Bob Jones, 35"),
    ],
)
def test_a_json_schema_that_lacks_something(place: Place, verdict: Verdict, name: str, sentence: str) -> None:
    json_employees(place, without(name), BOB)
    verdict.says(sentence, "06_json", place.cluster, registry=place.registry, refused=3)


def test_compare(place: Place, verdict: Verdict) -> None:
    schemas = {"avro": avro(V1), "protobuf": Schema(MESSAGE, "PROTOBUF"), "json": Schema(json.dumps(JSON_SCHEMA), "JSON")}
    given = {"registry": place.registry, "sizes": {"avro": 15, "protobuf": 16, "json": 17}, "survives": "protobuf"}
    verdict.says("There is no topic 'compare-avro' yet", "06_compare", place.cluster, **given)
    for n, (name, schema) in enumerate(schemas.items()):
        topic = f"compare-{name}"
        place.client.register_schema(f"{topic}-value", schema)
        create(place.cluster, topic, 1)
        place.send(topic, [place.frame(f"{topic}-value", b"x" * (10 + n))] * 100)
    verdict.passes("06_compare", place.cluster, **given)
    says = functools.partial(verdict.says, cluster=place.cluster, lab="06_compare")
    says("In compare-json a record has 17.0 bytes, not 12", **{**given, "sizes": {**given["sizes"], "json": 12}})  # type: ignore[dict-item]
    says("By name or by number?", **{**given, "survives": "avro"})
    says("Give check() your answer as survives=", **{**given, "survives": None})
    says("Give check() your answer as sizes=", **{**given, "sizes": {}})
    place.send("compare-avro", [place.frame("compare-json-value", b"x" * 10)])
    says("compare-avro holds 101 records, not 100", **given)
