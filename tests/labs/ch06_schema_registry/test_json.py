"""A JSON Schema and three formats: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from confluent_kafka.schema_registry import Schema

from schema_support import BOB, V1, Registered, avro
from support import Verdict

pytestmark = pytest.mark.cluster

JSON, COMPARE = "06_json", "06_compare"
TOPIC = "json-employees"

STRING = {"type": "string"}
JSON_SCHEMA: dict[str, Any] = {
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
PROTO = 'syntax = "proto3";\nmessage SimpleMessage {\n  string content = 1;\n}\n'


def send(registered: Registered, schema: dict[str, Any], *values: dict[str, Any]) -> None:
    registered.client.register_schema(f"{TOPIC}-value", Schema(json.dumps(schema), "JSON"))
    registered.fill(TOPIC, [registered.framed(f"{TOPIC}-value", json.dumps(value).encode()) for value in values])


def test_json(registered: Registered, verdict: Verdict) -> None:
    cluster, given = registered.cluster, {"registry": registered.registry, "refused": 3}
    passed, printed = verdict(JSON, cluster, **given)
    assert not passed
    assert "There is no subject 'json-employees-value' yet" in printed
    assert printed.count("Not looked at yet") == 3
    send(registered, JSON_SCHEMA, BOB)
    verdict.passes(JSON, cluster, **given)
    verdict.passes(JSON, cluster, **{**given, "refused": np.int64(3)})
    verdict.says("You counted 2.", JSON, cluster, **{**given, "refused": 2})
    verdict.says("Give check() your answer as refused=", JSON, cluster, registry=registered.registry)
    registered.add(TOPIC, [registered.framed(f"{TOPIC}-value", json.dumps({**BOB, "age": -1}).encode())])
    verdict.says("The record at offset 1 is one that your schema should reject", JSON, cluster, **given)


def without(name: str) -> dict[str, Any]:
    """The schema with one thing less in it."""
    schema = copy.deepcopy(JSON_SCHEMA)
    if name in schema["required"]:
        schema["required"].remove(name)
    elif name == "minimum":
        del schema["properties"]["age"]["minimum"]
    elif name == "any age":
        del schema["properties"]["age"]
    elif name == "whole":
        schema["properties"]["age"]["type"] = "number"
    elif name == "areaCode":
        del schema["properties"]["phoneNumber"]["properties"]["areaCode"]
    elif name == "object":
        del schema["properties"]["phoneNumber"]["type"]
    else:
        schema["properties"]["phoneNumber"] = STRING
    return schema


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (without("firstName"), "accepts an employee without a first name"),
        (without("lastName"), "accepts an employee without a last name"),
        (without("age"), "accepts an employee without an age"),
        (without("whole"), "accepts an employee of age 34.5"),
        (without("any age"), "accepts an employee whose age is text"),
        (without("minimum"), "accepts an employee of age -1"),
        (without("areaCode"), "accepts an employee whose area code is a number"),
        (without("object"), "accepts an employee whose phone number is text"),
        (without("phoneNumber"), "rejects Bob Jones, 35"),
        ({**JSON_SCHEMA, "required": [*JSON_SCHEMA["properties"]]}, "rejects an employee without a phone number"),
    ],
    ids=["first", "last", "age", "whole", "any age", "minimum", "areaCode", "object", "phoneNumber", "too much required"],
)
def test_a_json_schema_that_is_wrong(registered: Registered, verdict: Verdict, schema: dict[str, Any], sentence: str) -> None:
    send(registered, schema, BOB)
    verdict.says(sentence, JSON, registered.cluster, registry=registered.registry, refused=3)


def test_compare(registered: Registered, verdict: Verdict) -> None:
    cluster = registered.cluster
    schemas = {"avro": avro(V1), "protobuf": Schema(PROTO, "PROTOBUF"), "json": Schema(json.dumps(JSON_SCHEMA), "JSON")}
    sizes = {"avro": 15, "protobuf": 16, "json": 17}
    given = {"registry": registered.registry, "sizes": sizes, "survives": "protobuf"}
    verdict.says("There is no topic 'compare-avro' yet", COMPARE, cluster, **given)
    for n, (name, schema) in enumerate(schemas.items()):
        topic = f"compare-{name}"
        registered.client.register_schema(f"{topic}-value", schema)
        values = [b"%03d" % number + b"x" * (7 + n) for number in range(100)]
        registered.fill(topic, [registered.framed(f"{topic}-value", value) for value in values])
    verdict.passes(COMPARE, cluster, **given)
    for sentence, wrong in {
        "The records in compare-json don't have 12 bytes on average": {"sizes": {**sizes, "json": 12}},
        "`sizes` has no 'protobuf'": {"sizes": {"avro": 15, "json": 17}},
        "Not in avro. Does its reader find a field by name?": {"survives": "avro"},
        "`survives` is still None": {"survives": None},
        "`sizes` is empty": {"sizes": {}},
    }.items():
        verdict.says(sentence, COMPARE, cluster, **{**given, **wrong})
    registered.add("compare-avro", [registered.framed("compare-avro-value", b"x" * 10)])
    verdict.says("compare-avro holds 101 records, not 100", COMPARE, cluster, **given)


def test_compare_one_employee_with_itself(registered: Registered, verdict: Verdict) -> None:
    registered.client.register_schema("compare-avro-value", avro(V1))
    registered.fill("compare-avro", [registered.framed("compare-avro-value", b"x" * 10)] * 100)
    sentence = "The 100 records of compare-avro hold 1 different value"
    verdict.says(sentence, COMPARE, registered.cluster, registry=registered.registry, sizes={}, survives="")
