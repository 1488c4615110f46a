"""Chapter 06: a registry's REST calls, Avro, Protobuf, JSON Schema, and how schemas change."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from confluent_kafka import Message

from kafkalab.checks.common import answer, behind, counted, existing
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.schemas import ask, avro_value, client_of, framed, message_payload, subject_versions
from kafkalab.checks.sight import Sight

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

__all__ = ["LABS"]

# -- what several labs ask ------------------------------------------------------------------------------------------


def _records(sight: Sight, topic: str) -> list[Message]:
    existing(sight, topic)
    records = sight.records(topic)
    if not records:
        raise Unmet(f"The topic {topic} is empty.")
    return records


def _names(schema_text: str) -> list[str]:
    """Names of an Avro record's fields."""
    schema = json.loads(schema_text)
    return [field["name"] for field in schema.get("fields", [])] if isinstance(schema, dict) else []


def _committed(group: str, topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        _records(sight, topic)
        for _, _, lag in behind(sight, sight.committed(group), topic):
            if lag is None:
                raise Unmet(f"The group {group} has committed nothing in {topic}.")
            raise Unmet(f"The group {group} is {counted(lag, 'record')} behind the end of {topic}.")

    return probe


def _has_type(subject: str, kind: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        found = subject_versions(sight, subject)[-1].schema.schema_type
        if found != kind:
            raise Unmet(f"The schema of {subject} is of type {found}, not {kind}.")

    return probe


# -- 06_rest, 06_evolution ------------------------------------------------------------------------------------------

_SUBJECT = "Employee"


def _two_versions(sight: Sight) -> None:
    versions = subject_versions(sight, _SUBJECT)
    if len(versions) < 2:
        raise Unmet(f"{_SUBJECT} has {counted(len(versions), 'version')}. What was posted second?")
    first, second = (_names(v.schema.schema_str) for v in versions[:2])
    if "age" in first or "age" not in second:
        raise Unmet(f"The first version has the fields {', '.join(first)}; the second {', '.join(second)}. Which of them knows the age?")


def _one_id(sight: Sight) -> None:
    other = subject_versions(sight, "Employee2")
    first = subject_versions(sight, _SUBJECT)[0]
    if other[0].schema_id != first.schema_id:
        raise Unmet("Employee2 has another id than the first version of Employee, so its schema is another one.")


def _levels(sight: Sight) -> None:
    client = client_of(sight)
    everywhere, own = ask(client.get_compatibility), ask(client.get_compatibility, _SUBJECT)
    if everywhere != "NONE":
        raise Unmet(f"For all subjects the level is {everywhere}.")
    # Not every server tells by the level alone whether it is the subject's own.
    if own != "BACKWARD" or ask(client.test_compatibility, _SUBJECT, _unreadable()):
        raise Unmet(f"For {_SUBJECT} a schema is accepted that BACKWARD refuses. A subject may have a level of its own.")


def _unreadable() -> Schema:
    """A schema that cannot read what any other one wrote."""
    from confluent_kafka.schema_registry import Schema

    field = {"name": "unheardOf", "type": "string"}
    return Schema(json.dumps({"type": "record", "name": _SUBJECT, "namespace": "com.cloudurable.phonebook", "fields": [field]}), "AVRO")


def _id_of_version_2(sight: Sight) -> None:
    given = answer(sight, "id_of_version_2", "the id that the registry names for version 2 of Employee")
    second = subject_versions(sight, _SUBJECT)[1:2]
    if not second or given != second[0].schema_id:
        raise Unmet(f"{given!r} is not the id of version 2. (The version is a number within the subject, the id one within the registry.)")


def _refused(sight: Sight) -> None:
    if answer(sight, "refused", "the HTTP status with which the renamed schema was refused") != 409:
        raise Unmet("That is not what a registry answers to an incompatible schema. What was the level of Employee?")
    if sight.answers.get("compatible") is not False:
        raise Unmet("Give check() compatible=…: what the compatibility test says of the renamed schema.")
    for version in subject_versions(sight, _SUBJECT):
        fields = {f["name"]: f.get("aliases", []) for f in json.loads(version.schema.schema_str)["fields"]}
        if "fName" in fields and "firstName" not in fields["fName"]:
            raise Unmet(f"Version {version.version} has the field fName, without a word of what it was called before. Delete that version.")


def _renamed_well(sight: Sight) -> None:
    versions = subject_versions(sight, _SUBJECT)
    latest = json.loads(versions[-1].schema.schema_str)
    if not {"fName", "lName"} <= set(_names(versions[-1].schema.schema_str)):
        raise Unmet(f"The last version has the fields {', '.join(_names(versions[-1].schema.schema_str))}.")
    seen = avro_value(versions[0].schema, _bob_by(json.loads(versions[0].schema.schema_str)), latest)
    if (seen.get("fName"), seen.get("lName")) != ("Bob", "Jones"):
        raise Unmet(f"Read with the last version, Bob Jones of version 1 is called {seen.get('fName')} {seen.get('lName')}.")


def _bob_by(schema: dict) -> bytes:
    import io

    import fastavro

    buffer = io.BytesIO()
    try:
        fastavro.schemaless_writer(buffer, schema, {"firstName": "Bob", "lastName": "Jones"})
    except Exception as error:  # whatever the learner's schema wants
        raise Unmet(f"With version 1, Bob Jones cannot be written: {error}.") from error
    return buffer.getvalue()


_REST = (
    Lab(
        "06_rest",
        "Talk to the registry",
        (
            Requirement("Employee has two versions, and the second one knows the age", _two_versions),
            Requirement("the same schema under Employee2 has the same id", _one_id),
            Requirement("nothing is asked of new subjects, but BACKWARD of Employee", _levels),
            Requirement("the id of version 2 is known", _id_of_version_2),
        ),
        (
            "`POST /subjects/Employee/versions` with `{\"schema\": \"…\"}`: the schema is a text inside JSON, so `json.dumps` twice.",
            "`PUT /config` and `PUT /config/Employee`, with `{\"compatibility\": \"…\"}`. Which one first? A level is asked of what comes *after* it was set.",
            "`GET /subjects/Employee/versions/2` answers subject, version, id and schema.",
        ),
    ),
    Lab(
        "06_evolution",
        "Rename a field, and be refused",
        (
            Requirement("the renamed schema was refused, and the subject is as it was", _refused),
            Requirement("the last version has the new names, and reads what version 1 wrote", _renamed_well),
        ),
        (
            "The status of a refused POST: `SchemaRegistryError.http_status_code`, or `curl -o /dev/null -w '%{http_code}'`.",
            "`client.test_compatibility(subject, schema)`, or `POST /compatibility/subjects/Employee/versions/latest`.",
            "A field may say what else it is called: `\"aliases\": [\"firstName\"]`. That is for the reader.",
        ),
    ),
)

# -- 06_avro, 06_scenario -------------------------------------------------------------------------------------------

_EMPLOYEES, _READERS = "new-employees", "KafkaExampleAvroConsumer"
_BOB = {"firstName": "Bob", "lastName": "Jones", "age": 35}
_PHONE = {"countryCode": "1", "areaCode": "301", "prefix": "555", "number": "1234"}


def _keys(sight: Sight) -> None:
    records = _records(sight, _EMPLOYEES)
    wrong = [m for m in records if len(m.key() or b"") != 8]
    if wrong:
        raise Unmet(f"The key at offset {wrong[0].offset()} has {counted(len(wrong[0].key() or b''), 'byte')}. A Long has eight.")
    keys = Counter(struct.unpack(">q", m.key())[0] for m in records)
    if set(keys) != set(range(1, 100)):
        raise Unmet(f"There are the keys {min(keys)} to {max(keys)}, {len(keys)} different ones.")
    if len(records) != 99:
        raise Unmet(f"There are {counted(len(records), 'record')}, and 99 keys. Was it sent twice?")


def _one_schema(sight: Sight) -> None:
    client = client_of(sight)
    ids = {framed(client, m)[1] for m in _records(sight, _EMPLOYEES)}
    if len(ids) != 1:
        raise Unmet(f"The records have {len(ids)} different schema ids.")
    subject_versions(sight, f"{_EMPLOYEES}-value")


def _all_bob(sight: Sight) -> None:
    client = client_of(sight)
    for m in _records(sight, _EMPLOYEES):
        schema, _, payload = framed(client, m)
        found = avro_value(schema, payload)
        for name, value in {**_BOB, "phoneNumber": _PHONE}.items():
            if found.get(name) != value:
                raise Unmet(f"At offset {m.offset()}, {name} is {found.get(name)!r}.")


def _only(sight: Sight, topic: str) -> tuple[dict, dict]:
    """The value of a topic's one record, and the schema it was written with."""
    records = _records(sight, topic)
    if len(records) != 1:
        raise Unmet(f"{topic} holds {counted(len(records), 'record')}; one is enough.")
    schema, _, payload = framed(client_of(sight), records[0])
    return avro_value(schema, payload), json.loads(schema.schema_str)


def _wrote_42(sight: Sight) -> None:
    value, _ = _only(sight, "employees-v2")
    if value.get("age") != 42:
        raise Unmet(f"The age in employees-v2 is {value.get('age')}.")


def _stored_without(sight: Sight) -> None:
    value, schema = _only(sight, "employees-stored")
    if "age" in {field["name"] for field in schema["fields"]}:
        raise Unmet("What was stored has an age. With which schema does the version-1 program write?")
    if value.get("firstName") != "Bob":
        raise Unmet("What was stored is not the employee that was read.")


def _ages(sight: Sight) -> None:
    given = answer(sight, "ages", "the ages that version 2 sees in employees-v2 and in employees-stored, in this order")
    if list(given) != [42, -1]:  # type: ignore[call-overload]
        raise Unmet(f"{given}: with which schema do you read the second one? Which default has it for the age?")


_AVRO = (
    Lab(
        "06_avro",
        "99 employees",
        (
            Requirement("99 records, with the keys 1 to 99 as Long", _keys),
            Requirement("all have one schema, which is registered for the topic", _one_schema),
            Requirement("each of them is Bob Jones, 35, with his phone number", _all_bob),
            Requirement("the consumer has read all, and committed", _committed(_READERS, _EMPLOYEES)),
        ),
        (
            "Java's LongSerializer writes eight bytes, the most significant first: `struct.pack(\">q\", number)`.",
            "`AvroSerializer(client, json.dumps(schema))`, called with the dictionary and `SerializationContext(topic, MessageField.VALUE)`.",
            "A record's schema stands where the type's name would: `{\"name\": \"phoneNumber\", \"type\": {\"type\": \"record\", …}}`.",
            "`consumer.commit(asynchronous=False)` after the last record was read.",
        ),
    ),
    Lab(
        "06_scenario",
        "A field that vanishes",
        (
            Requirement("version 2 wrote age 42", _wrote_42),
            Requirement("version 1 read it and stored it, without an age", _stored_without),
            Requirement("version 2 sees 42 in the one, and its default in the other", _ages),
        ),
        (
            "`AvroDeserializer(client, json.dumps(schema))` reads *as* that schema, whatever the record was written with.",
            "A topic's subject must know both versions if both write to it; here each topic has one writer.",
        ),
    ),
)

# -- 06_protobuf, 06_generic, 06_order ------------------------------------------------------------------------------

_MESSAGES, _ORDERS = "protobuf-topic", "orders"
_STRING, _INT32, _INT64, _MESSAGE = 9, 5, 3, 11


def _decode(client: SchemaRegistryClient, record: Message, message: str) -> object:
    """A record's message, read with the fields that the text names."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    payload = message_payload(framed(client, record)[2])
    field = descriptor_pb2.FieldDescriptorProto
    described = {
        "SimpleMessage": [("content", 1, _STRING, 1), ("date_time", 2, _STRING, 1)],
        "Product": [("product_id", 1, _INT32, 1), ("name", 2, _STRING, 1), ("description", 3, _STRING, 1)],
        "Order": [("order_id", 1, _INT64, 1), ("date_time", 2, _INT64, 1), ("product", 3, _MESSAGE, 3)],
    }
    messages = [
        descriptor_pb2.DescriptorProto(
            name=name,
            field=[
                field(name=n, number=i, type=t, label=label, type_name=".check.Product" if t == _MESSAGE else None)  # type: ignore[arg-type]
                for n, i, t, label in fields
            ],
        )
        for name, fields in described.items()
    ]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto(name="check.proto", package="check", syntax="proto3", message_type=messages))
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"check.{message}")).FromString(payload)
    except DecodeError as error:
        raise Unmet(f"A record is no {message}. Are the fields' numbers those of the text?") from error


def _hello(sight: Sight) -> Message:
    records = _records(sight, _MESSAGES)
    if len(records) != 1:
        raise Unmet(f"{_MESSAGES} holds {counted(len(records), 'record')}; one is asked for.")
    return records[0]


def _says_hello(sight: Sight) -> None:
    record = _hello(sight)
    if record.key() is not None:
        raise Unmet("The record has a key; none is asked for.")
    client = client_of(sight)
    schema, _, _ = framed(client, record)
    if schema.schema_type != "PROTOBUF":
        raise Unmet(f"The record's schema is of type {schema.schema_type}.")
    message = _decode(client, record, "SimpleMessage")
    if message.content != "Hello world":  # type: ignore[attr-defined]
        raise Unmet(f"The content is {message.content!r}.")  # type: ignore[attr-defined]
    if "T" not in message.date_time:  # type: ignore[attr-defined]
        raise Unmet(f"The time is {message.date_time!r}: not as ISO 8601 writes it.")  # type: ignore[attr-defined]


def _seen_generic(sight: Sight) -> None:
    seen = answer(sight, "seen", "the fields that your generic consumer saw: {name: value}")
    message = _decode(client_of(sight), _hello(sight), "SimpleMessage")
    wanted = {"content": message.content, "date_time": message.date_time}  # type: ignore[attr-defined]
    if seen != wanted:
        raise Unmet(f"It saw {seen}; the record says {wanted}. Do the names come from the schema?")


def _orders(sight: Sight) -> None:
    client, counts = client_of(sight), []
    for record in _records(sight, _ORDERS):
        order = _decode(client, record, "Order")
        counts.append(len(order.product))  # type: ignore[attr-defined]
        if any(not product.name for product in order.product):  # type: ignore[attr-defined]
            raise Unmet(f"A product of the order at offset {record.offset()} has no name.")
    if 0 not in counts or 1 not in counts or max(counts) < 2:
        raise Unmet(f"The orders have {', '.join(map(str, sorted(counts)))} products: none, one and several are asked for.")


def _reference(sight: Sight) -> None:
    latest = subject_versions(sight, f"{_ORDERS}-value")[-1]
    referred = [reference.subject for reference in latest.schema.references or []]
    if not referred:
        raise Unmet("The order's schema refers to no other one. Is the product in a file of its own, which is imported?")
    for subject in referred:
        subject_versions(sight, subject)


def _read_back(sight: Sight) -> None:
    read = answer(sight, "products", "how many products each order has, as read back, in order of offset")
    client = client_of(sight)
    wanted = [
        len(_decode(client, record, "Order").product)  # type: ignore[attr-defined]
        for record in _records(sight, _ORDERS)
    ]
    if list(read) != wanted:  # type: ignore[call-overload]
        raise Unmet(f"You read {read}; the topic holds {wanted}.")


_PROTOBUF = (
    Lab(
        "06_protobuf",
        "Hello world, in Protobuf",
        (
            Requirement("the schema is registered for the topic, as Protobuf", _has_type(f"{_MESSAGES}-value", "PROTOBUF")),
            Requirement("one record without a key says Hello world, and when", _says_hello),
            Requirement("the consumer has committed it", _committed("protobuf-consumer-group", _MESSAGES)),
        ),
        (
            "`ProtobufSerializer(SimpleMessage, client, {\"use.deprecated.format\": False})` registers the schema when it is first used.",
            "`datetime.now(UTC).isoformat()` is the time as text.",
            "`ProtobufDeserializer(SimpleMessage, {\"use.deprecated.format\": False})`; `consumer.commit(record)` is asynchronous, `close()` waits for it.",
        ),
    ),
    Lab(
        "06_generic",
        "Read it without its class",
        (
            Requirement("all fields were seen, by the names of the schema", _seen_generic),
            Requirement("the generic consumer has a place of its own", _committed("generic-protobuf-consumer-group", _MESSAGES)),
        ),
        (
            "The id is in bytes 1 to 4; `descriptor_of(id)` gives the description of the file that the registry knows.",
            "A pool that has the description finds the message type by its full name: the package, a dot, and `message_type[0].name`.",
            "`message_factory.GetMessageClass(…).FromString(value[6:])`, and `ListFields()` gives pairs of descriptor and value.",
        ),
    ),
    Lab(
        "06_order",
        "An order with products",
        (
            Requirement("orders with none, one and several products", _orders),
            Requirement("the product is a schema of its own, to which the order refers", _reference),
            Requirement("they were read back", _read_back),
        ),
        (
            "A field that may come many times is `repeated`.",
            "`import \"product.proto\";` in the order's file. The serializer registers what is imported first.",
            "`ProtobufDeserializer(Order, {\"use.deprecated.format\": False})`, and `len(order.product)`.",
        ),
    ),
)

# -- 06_json, 06_compare --------------------------------------------------------------------------------------------

_JSON = "json-employees"


def _judges(sight: Sight) -> None:
    import jsonschema

    schema = json.loads(subject_versions(sight, f"{_JSON}-value")[-1].schema.schema_str)
    cases = {
        "Bob Jones, 35": ({**_BOB, "phoneNumber": _PHONE}, True),
        "one without a last name": ({"firstName": "Bob", "age": 35}, False),
        "one whose age is a text": ({**_BOB, "age": "35"}, False),
        "one of age -1": ({**_BOB, "age": -1}, False),
        "one whose area code is a number": ({**_BOB, "phoneNumber": {**_PHONE, "areaCode": 301}}, False),
    }
    for who, (employee, good) in cases.items():
        try:
            jsonschema.validate(employee, schema)
            passes = True
        except jsonschema.ValidationError:
            passes = False
        except Exception as error:  # a schema that no validator understands
            raise Unmet(f"The schema itself is not understood: {type(error).__name__}.") from error
        if passes != good:
            raise Unmet(f"Your schema {'accepts' if passes else 'refuses'} {who}.")


def _only_good(sight: Sight) -> None:
    client = client_of(sight)
    for record in _records(sight, _JSON):
        _, _, payload = framed(client, record)
        try:
            found = json.loads(payload)
        except ValueError as error:
            raise Unmet(f"The record at offset {record.offset()} is not JSON.") from error
        if not isinstance(found.get("age"), int) or found["age"] < 0 or "lastName" not in found:
            raise Unmet(f"The record at offset {record.offset()} should have been refused.")


def _were_refused(sight: Sight) -> None:
    given = answer(sight, "refused", "how many of the three bad employees the serializer refused")
    if given != 3:
        raise Unmet(f"{given} of 3 were refused.")


_COMPARED = {"avro": "AVRO", "protobuf": "PROTOBUF", "json": "JSON"}


def _same_number(sight: Sight) -> None:
    client = client_of(sight)
    for name, kind in _COMPARED.items():
        records = _records(sight, f"compare-{name}")
        if len(records) != 100:
            raise Unmet(f"compare-{name} holds {counted(len(records), 'record')}, not 100.")
        found = framed(client, records[0])[0].schema_type
        if found != kind:
            raise Unmet(f"The records of compare-{name} have a schema of type {found}.")


def _sizes(sight: Sight) -> None:
    given = answer(sight, "sizes", "bytes of a record on average, header included: {\"avro\": …, \"protobuf\": …, \"json\": …}")
    for name in _COMPARED:
        values = [len(m.value() or b"") for m in _records(sight, f"compare-{name}")]
        wanted = sum(values) / len(values)
        if abs(given.get(name, 0) - wanted) > 0.5:  # type: ignore[attr-defined]
            raise Unmet(f"In compare-{name} a record has {wanted:.1f} bytes, not {given.get(name)}.")  # type: ignore[attr-defined]


def _finds_renamed(sight: Sight) -> None:
    given = answer(sight, "survives", "the format whose reader still finds a field that was renamed, without a hint from anybody: \"avro\" …")
    if given != "protobuf":
        raise Unmet(f"{given}: by what does it find a field? By name or by number?")


_JSON_SCHEMA = (
    Lab(
        "06_json",
        "A schema for JSON",
        (
            Requirement("the schema is registered for the topic, as JSON Schema", _has_type(f"{_JSON}-value", "JSON")),
            Requirement("it tells good employees from bad ones", _judges),
            Requirement("the bad ones were refused by the serializer", _were_refused),
            Requirement("only good ones are in the topic", _only_good),
        ),
        (
            "`\"type\": \"object\"`, `\"properties\": {name: {\"type\": …}}`, `\"required\": [names]`.",
            "A whole number is `\"integer\"`; `\"minimum\"` says how small it may be. A record in a record is an object again.",
            "`JSONSerializer(json.dumps(schema), client)` raises `SerializationError` for what does not fit.",
        ),
    ),
    Lab(
        "06_compare",
        "Three formats, one employee",
        (
            Requirement("100 employees in each of the three formats", _same_number),
            Requirement("the sizes are measured", _sizes),
            Requirement("it is known which one survives a new name", _finds_renamed),
        ),
        (
            "`len(serialize(employee, context))` has the header in it: five bytes, six for Protobuf.",
            "Look at section 7 of the chapter: what is a field found by, in each of the three?",
        ),
    ),
)

LABS = (*_REST, *_AVRO, *_PROTOBUF, *_JSON_SCHEMA)
