"""Employees sent and read with Avro, and a field that an older program loses."""

from __future__ import annotations

import json
import struct
from collections import Counter
from typing import Any

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import has_read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.schemas import avro_bytes, avro_value, client_of, field_names, framed, subject_versions
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC = "new-employees"
LONG = 8
PHONE = {"countryCode": "1", "areaCode": "301", "prefix": "555", "number": "1234"}
BOB = {"firstName": "Bob", "lastName": "Jones", "age": 35, "phoneNumber": PHONE}

lab = Lab("06_avro")

avro = lab.add_check(
    "06_avro",
    "Send and read 99 employees",
    hints=(
        'Java\'s LongSerializer writes eight bytes, the most significant one first: struct.pack(">q", number).',
        'client.register_schema(subject, Schema(json.dumps(schema), "AVRO")) registers. Section 3 of the chapter says which '
        "subject belongs to a topic's values. AvroSerializer(client, json.dumps(schema), conf={…}) makes a function of two "
        "arguments: the dictionary and SerializationContext(topic, MessageField.VALUE).",
        "A record inside a record is written where a type's name would be: "
        '{"name": "phoneNumber", "type": {"type": "record", …}}.',
        "Call consumer.commit(asynchronous=False) after you have read the last record.",
    ),
)


@avro.requires("new-employees holds 99 records with the keys 1 to 99, each a Long")
def keys_are_longs(ctx: CheckContext) -> None:
    records = filled(ctx, TOPIC)
    for m in records:
        if len(key := m.key() or b"") != LONG:
            raise Unmet(f"The key at offset {m.offset()} has {counted(len(key), 'byte')}. How many does a Long have?")
    keys = Counter(struct.unpack(">q", m.key() or b"")[0] for m in records)
    if set(keys) != set(range(1, 100)):
        raise Unmet(f"{TOPIC} holds {counted(len(keys), 'different key')}, from {min(keys)} to {max(keys)}.")
    if len(records) != 99:
        raise Unmet(f"{TOPIC} holds {len(records)} records with 99 keys. Does the cell send each employee once?")


@avro.requires("All of them have one schema, registered for the topic", after=keys_are_longs)
def records_have_one_schema(ctx: CheckContext) -> None:
    client = client_of(ctx)
    ids = {framed(client, m)[1] for m in filled(ctx, TOPIC)}
    if len(ids) != 1:
        raise Unmet(f"The records carry {len(ids)} different schema ids.")
    if ids.isdisjoint(version.schema_id for version in subject_versions(ctx, f"{TOPIC}-value")):
        raise Unmet(f"The records' schema isn't registered under {TOPIC}-value. Which topic did the serializer's context name?")


@avro.requires("The schema takes an employee without a nickname or an age, whose age is then -1", after=records_have_one_schema)
def defaults_are_there(ctx: CheckContext) -> None:
    schema = framed(client_of(ctx), filled(ctx, TOPIC)[0])[0]
    nameless = {name: value for name, value in BOB.items() if name != "age"}
    seen = avro_value(schema, avro_bytes(schema, nameless))
    if missing := [name for name in ("nickName", "age") if name not in seen]:
        raise Unmet(f"The schema has no field {missing[0]}. Its fields are {', '.join(seen)}.")
    if seen["age"] != -1:
        raise Unmet(f"Without an age, the record says that it's {seen['age']}.")


@avro.requires("Each one is Bob Jones, 35, with his phone number", after=records_have_one_schema)
def everybody_is_bob(ctx: CheckContext) -> None:
    client = client_of(ctx)
    for m in filled(ctx, TOPIC):
        schema, _, payload = framed(client, m)
        found = avro_value(schema, payload)
        for name, value in BOB.items():
            if found.get(name) != value:
                where = f"In the record at offset {m.offset()} of partition {m.partition()}"
                raise Unmet(f"{where}, {name} is {found.get(name)!r}.")


avro.requires("The group KafkaExampleAvroConsumer has read and committed all of them", after=keys_are_longs)(
    has_read_everything("KafkaExampleAvroConsumer", TOPIC)
)

scenario = lab.add_check(
    "06_scenario",
    "Lose a field",
    hints=(
        "AvroDeserializer(client, json.dumps(schema)) reads records as that schema, whichever schema they were written with.",
        "If two programs with different versions write to one topic, its subject needs both versions. Here each topic has one "
        "writer.",
    ),
)


def _only_record(ctx: CheckContext, topic: str) -> tuple[dict[str, Any], list[str]]:
    """Return the value of a topic's only record, and the field names in the schema it was written with."""
    records = filled(ctx, topic)
    if len(records) != 1:
        raise Unmet(f"{topic} holds {len(records)} records. One is enough. To begin afresh, run the cell that sends again.")
    schema, _, payload = framed(client_of(ctx), records[0])
    return avro_value(schema, payload), field_names(schema.schema_str or "")


@scenario.requires("The version-2 program wrote the age 42")
def age_was_written(ctx: CheckContext) -> None:
    value, _ = _only_record(ctx, "employees-v2")
    if value.get("age") != 42:
        raise Unmet(f"The age in employees-v2 is {value.get('age')}.")


@scenario.requires("The version-1 program stored what it read, without an age", after=age_was_written)
def stored_without_age(ctx: CheckContext) -> None:
    value, names = _only_record(ctx, "employees-stored")
    if "age" in names:
        raise Unmet("The record in employees-stored has an age. With which schema does the version-1 program write?")
    if value.get("firstName") != "Bob":
        raise Unmet(f"The version-1 program read Bob, but employees-stored holds {json.dumps(value)}.")


@scenario.requires("You know which ages the version-2 program sees in the two topics", after=stored_without_age)
def ages_are_known(ctx: CheckContext) -> None:
    given = ctx.answer("ages", list[int], "the ages that version 2 sees in employees-v2 and in employees-stored, in this order")
    if given != [42, -1]:
        raise Unmet(f"Version 2 doesn't see {given}. Which schema did you give the deserializer, and what's its default?")
