"""99 employees, and a field that gets lost: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from schema_support import AGE, BOB, V1, V2, Registered, record
from support import Verdict, commit, create

pytestmark = pytest.mark.cluster

AVRO, SCENARIO = "06_avro", "06_scenario"
TOPIC, GROUP = "new-employees", "KafkaExampleAvroConsumer"
TEXTS = [{"name": name, "type": "string"} for name in ("countryCode", "areaCode", "prefix", "number")]
PHONE_NUMBER = {"name": "phoneNumber", "type": {"type": "record", "name": "Phone", "fields": TEXTS}}
NICK_NAME = {"name": "nickName", "type": ["null", "string"], "default": None}
EMPLOYEE = record("firstName", NICK_NAME, "lastName", AGE, PHONE_NUMBER)
LONG = struct.Struct(">q").pack
KEYS = [LONG(n) for n in range(1, 100)]

Write = Callable[[dict[str, object]], bytes]


def test_avro(registered: Registered, verdict: Verdict) -> None:
    cluster, given = registered.cluster, {"registry": registered.registry}
    verdict.says("There is no topic 'new-employees' yet", AVRO, cluster, **given)
    create(cluster, TOPIC, 1, copies=1)
    passed, printed = verdict(AVRO, cluster, **given)
    assert not passed
    assert "The topic new-employees is empty" in printed
    assert printed.count("Not looked at yet") == 4
    write = registered.avro_writer(TOPIC, EMPLOYEE)
    registered.add(TOPIC, [write(BOB)] * 99, KEYS)
    verdict.says("There is no consumer group 'KafkaExampleAvroConsumer' yet", AVRO, cluster, **given)
    commit(cluster, GROUP, TOPIC, {0: 98})
    verdict.says("has committed offset 98 in partition 0 of new-employees, which ends at offset 99", AVRO, cluster, **given)
    commit(cluster, GROUP, TOPIC)
    verdict.passes(AVRO, cluster, **given)
    registered.add(TOPIC, [write(BOB)], [LONG(7)])
    verdict.says("holds 100 records with 99 keys. Does the cell send each employee once?", AVRO, cluster, **given)


Change = Callable[[Write, list[bytes], list[bytes]], tuple[Sequence[bytes], Sequence[bytes]]]


@pytest.mark.parametrize(
    ("sentence", "change"),
    [
        ("has 1 byte. How many does a Long have?", lambda write, values, keys: (values, [b"1", *keys[1:]])),
        ("99 different keys, from 0 to 98", lambda write, values, keys: (values, [LONG(n) for n in range(99)])),
        ("doesn't begin with a magic byte", lambda write, values, keys: ([json.dumps(BOB).encode(), *values[1:]], keys)),
        ("which the registry doesn't know", lambda write, values, keys: ([b"\0\0\x0f\0\0" + values[0][5:], *values[1:]], keys)),
        ("can't be read with its schema", lambda write, values, keys: ([values[0][:9], *values[1:]], keys)),
        ("offset 0 of partition 0, age is 36", lambda write, values, keys: ([write({**BOB, "age": 36}), *values[1:]], keys)),
    ],
)
def test_avro_that_is_wrong(registered: Registered, verdict: Verdict, sentence: str, change: Change) -> None:
    write = registered.avro_writer(TOPIC, EMPLOYEE)
    registered.fill(TOPIC, *change(write, [write(BOB)] * 99, KEYS))
    commit(registered.cluster, GROUP, TOPIC)
    verdict.says(sentence, AVRO, registered.cluster, registry=registered.registry)


def test_avro_with_two_schemas(registered: Registered, verdict: Verdict) -> None:
    other = copy.deepcopy(EMPLOYEE)
    other["fields"].append({"name": "title", "type": "string", "default": ""})
    first, second = (registered.avro_writer(TOPIC, schema)(BOB) for schema in (EMPLOYEE, other))
    registered.fill(TOPIC, [first] * 98 + [second], KEYS)
    verdict.says("2 different schema ids", AVRO, registered.cluster, registry=registered.registry)


@pytest.mark.parametrize(
    ("sentence", "fields"),
    [
        ("has no field nickName", ("firstName", "lastName", AGE, PHONE_NUMBER)),
        (
            "Without an age, the record says that it's 0",
            ("firstName", NICK_NAME, "lastName", {**AGE, "default": 0}, PHONE_NUMBER),
        ),
        (
            "can't be written with your schema",
            ("firstName", NICK_NAME, "lastName", {"name": "age", "type": "int"}, PHONE_NUMBER),
        ),
    ],
)
def test_avro_without_defaults(registered: Registered, verdict: Verdict, sentence: str, fields: tuple) -> None:
    write = registered.avro_writer(TOPIC, record(*fields))
    registered.fill(TOPIC, [write(BOB)] * 99, KEYS)
    verdict.says(sentence, AVRO, registered.cluster, registry=registered.registry)


def test_avro_with_the_schema_of_another_topic(registered: Registered, verdict: Verdict) -> None:
    registered.fill(TOPIC, [registered.avro_writer("employees", EMPLOYEE)(BOB)] * 99, KEYS)
    verdict.says("There is no subject 'new-employees-value' yet", AVRO, registered.cluster, registry=registered.registry)
    registered.avro_writer(TOPIC, V1)({"firstName": "Bob", "lastName": "Jones"})
    verdict.says("isn't registered under new-employees-value", AVRO, registered.cluster, registry=registered.registry)


def test_scenario(registered: Registered, verdict: Verdict) -> None:
    cluster, given = registered.cluster, {"registry": registered.registry, "ages": [42, -1]}
    for topic in ("employees-v2", "employees-stored"):
        create(cluster, topic, 1, copies=1)
    verdict.says("The topic employees-v2 is empty", SCENARIO, cluster, **given)
    written = registered.avro_writer("employees-v2", V2)({"firstName": "Bob", "lastName": "Jones", "age": 42})
    registered.add("employees-v2", [written])
    stored = registered.avro_writer("employees-stored", V1)({"firstName": "Bob", "lastName": "Jones"})
    registered.add("employees-stored", [stored])
    verdict.passes(SCENARIO, cluster, **given)
    verdict.passes(SCENARIO, cluster, **{**given, "ages": (np.int64(42), -1)})
    verdict.says("Version 2 doesn't see [42, 42]", SCENARIO, cluster, **{**given, "ages": [42, 42]})
    verdict.says("Give check() your answer as ages=", SCENARIO, cluster, registry=registered.registry)
    registered.add("employees-v2", [written])
    verdict.says("employees-v2 holds 2 records. One is enough", SCENARIO, cluster, **given)


def test_scenario_that_is_wrong(registered: Registered, verdict: Verdict) -> None:
    given = {"registry": registered.registry, "ages": [42, -1]}
    ann = {"firstName": "Ann", "lastName": "Jones"}
    registered.fill("employees-v2", [registered.avro_writer("employees-v2", V2)({**ann, "age": 41})])
    verdict.says("The age in employees-v2 is 41", SCENARIO, registered.cluster, **given)


@pytest.mark.parametrize(
    ("sentence", "schema", "name"), [("has an age", V2, "Bob"), ('holds {"firstName": "Ann", "lastName": "Jones"}', V1, "Ann")]
)
def test_what_was_stored_is_wrong(registered: Registered, verdict: Verdict, sentence: str, schema: dict, name: str) -> None:
    bob = {"firstName": "Bob", "lastName": "Jones", "age": 42}
    registered.fill("employees-v2", [registered.avro_writer("employees-v2", V2)(bob)])
    stored = {field["name"]: {**bob, "firstName": name}[field["name"]] for field in schema["fields"]}
    registered.fill("employees-stored", [registered.avro_writer("employees-stored", schema)(stored)])
    verdict.says(sentence, SCENARIO, registered.cluster, registry=registered.registry, ages=[42, -1])
