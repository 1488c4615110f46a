"""A JSON Schema that separates good employees from bad ones, and a comparison of the three formats."""

from __future__ import annotations

import json
from typing import Any

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.schemas import client_of, framed, has_type, subject_versions
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC = "json-employees"
BAD_ONES = 3
PHONE = {"countryCode": "1", "areaCode": "301", "prefix": "555", "number": "1234"}
BOB = {"firstName": "Bob", "lastName": "Jones", "age": 35, "phoneNumber": PHONE}
CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "Bob Jones, 35": (BOB, True),
    "an employee without a phone number": ({name: BOB[name] for name in ("firstName", "lastName", "age")}, True),
    "an employee of age 0": ({**BOB, "age": 0}, True),
    "an employee without a first name": ({name: BOB[name] for name in ("lastName", "age")}, False),
    "an employee without a last name": ({"firstName": "Bob", "age": 35}, False),
    "an employee without an age": ({name: BOB[name] for name in ("firstName", "lastName")}, False),
    "an employee whose age is text": ({**BOB, "age": "35"}, False),
    "an employee of age -1": ({**BOB, "age": -1}, False),
    "an employee of age 34.5": ({**BOB, "age": 34.5}, False),
    "an employee whose phone number is text": ({**BOB, "phoneNumber": "1 301 555 1234"}, False),
    "an employee whose area code is a number": ({**BOB, "phoneNumber": {**PHONE, "areaCode": 301}}, False),
}
FORMATS = {"avro": "AVRO", "protobuf": "PROTOBUF", "json": "JSON"}

lab = Lab("06_json")

json_schema = lab.add_check(
    "06_json",
    "Write a schema for JSON",
    hints=(
        '"type": "object" comes with "properties": {name: {"type": …}} and "required": [names].',
        'A whole number is an "integer", and "minimum" bounds it. An object inside an object is written like the outer one.',
        'client.register_schema("json-employees-value", Schema(json.dumps(schema), "JSON")) registers.',
        "JSONSerializer(json.dumps(schema), client, conf={…}) raises SerializationError for a value that doesn't fit.",
    ),
)

registered = json_schema.requires("The schema is registered for the topic as JSON Schema")(has_type(f"{TOPIC}-value", "JSON"))


@json_schema.requires("It accepts good employees and rejects bad ones", after=registered)
def schema_judges(ctx: CheckContext) -> None:
    import jsonschema

    schema = json.loads(subject_versions(ctx, f"{TOPIC}-value")[-1].schema.schema_str or "")
    for who, (employee, good) in CASES.items():
        try:
            jsonschema.validate(employee, schema)
            accepts = True
        except jsonschema.ValidationError:
            accepts = False
        except Exception as error:  # a schema that the validator can't use
            raise Unmet(f"The validator doesn't understand your schema ({type(error).__name__}).") from error
        if accepts != good:
            raise Unmet(f"Your schema {'accepts' if accepts else 'rejects'} {who}.")


@json_schema.requires("The serializer rejected the bad ones", after=schema_judges)
def bad_ones_were_rejected(ctx: CheckContext) -> None:
    given = ctx.answer("refused", int, "how many of the employees the serializer rejected")
    if given != BAD_ONES:
        raise Unmet(f"You counted {given}. Does your loop go on after the first SerializationError?")


@json_schema.requires("json-employees holds good ones only", after=registered)
def only_good_ones_are_there(ctx: CheckContext) -> None:
    client = client_of(ctx)
    for record in filled(ctx, TOPIC):
        _, _, payload = framed(client, record)
        try:
            found = json.loads(payload)
        except ValueError as error:
            raise Unmet(f"The record at offset {record.offset()} isn't JSON.") from error
        good = isinstance(found, dict) and isinstance(found.get("age"), int) and found["age"] >= 0 and "lastName" in found
        if not good:
            raise Unmet(f"The record at offset {record.offset()} is one that your schema should reject: {payload.decode()}")


compare = lab.add_check(
    "06_compare",
    "Compare three formats",
    hints=(
        "The serialized value begins with the header, so its length counts that, too: five bytes, and six for Protobuf.",
        "Section 7 of the chapter shows what a reader finds a field by, in each of the three formats.",
    ),
)


@compare.requires("The three topics hold 100 employees each, in their format")
def topics_hold_the_same_number(ctx: CheckContext) -> None:
    client = client_of(ctx)
    for name, kind in FORMATS.items():
        records = filled(ctx, f"compare-{name}")
        if len(records) != 100:
            raise Unmet(f"compare-{name} holds {len(records)} records, not 100.")
        if (different := len({record.value() for record in records})) != 100:
            raise Unmet(
                f"The 100 records of compare-{name} hold {counted(different, 'different value')}. What does the loop send?"
            )
        found = framed(client, records[0])[0].schema_type
        if found != kind:
            raise Unmet(f"The records of compare-{name} have a schema of type {found}.")


@compare.requires("You measured the size of a record in each format", after=topics_hold_the_same_number)
def sizes_are_measured(ctx: CheckContext) -> None:
    given = ctx.answer("sizes", dict[str, float], "format → bytes of a record on average, with its header")
    for name in FORMATS:
        values = [len(m.value() or b"") for m in filled(ctx, f"compare-{name}")]
        if name not in given:
            raise Unmet(f"`sizes` has no entry {name!r}.")
        if abs(given[name] - sum(values) / len(values)) > 0.5:
            raise Unmet(f"The records in compare-{name} don't have {given[name]:g} bytes on average. Did you count the header?")


@compare.requires("You know in which format a renamed field is still found")
def surviving_format_is_known(ctx: CheckContext) -> None:
    given = ctx.answer("survives", str, 'one of the formats: "avro", "protobuf" or "json"')
    if given.strip().lower() != "protobuf":
        raise Unmet(f"Not in {given}. Does its reader find a field by name?")
