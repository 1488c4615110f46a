"""Questions about a schema registry, and about records written with its schemas."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from kafka.record.util import decode_varint

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.probes import parametrized
from kafkalab.checks.topics import filled
from kafkalab.services import SchemaRegistry

if TYPE_CHECKING:
    from confluent_kafka import Message
    from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient

__all__ = [
    "ask",
    "avro_bytes",
    "avro_value",
    "client_of",
    "field_names",
    "framed",
    "has_type",
    "message_payload",
    "only_record",
    "subject_versions",
]

P = ParamSpec("P")
T = TypeVar("T")


def client_of(ctx: CheckContext) -> SchemaRegistryClient:
    """Return a new client of the learner's registry, with an empty cache. Creating one takes a while, so share it."""
    from confluent_kafka.schema_registry import SchemaRegistryClient  # loads an HTTP client, which few labs need

    registry = ctx.answer("registry", SchemaRegistry, "your schema registry")
    return SchemaRegistryClient({"url": registry.url, "timeout": 10})


def ask(question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return the registry's answer to a method of the client, or None if the registry says that it doesn't exist.

    Raises
    ------
    Unmet
        If the registry doesn't answer.
    """
    import httpx2
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    try:
        return question(*args, **kwargs)
    except SchemaRegistryError as error:
        if error.http_status_code == 404:
            return None
        raise Unmet(f"The registry answers HTTP {error.http_status_code}: {error.error_message}") from error
    except httpx2.TransportError as error:
        raise Unmet("The registry doesn't answer. Is it running?") from error


def subject_versions(ctx: CheckContext, subject: str) -> list[RegisteredSchema]:
    """Return all versions of a subject, in order. Raise `Unmet` if it doesn't exist."""
    client = client_of(ctx)
    numbers = ask(client.get_versions, subject)
    if not numbers:
        known = ", ".join(ask(client.get_subjects) or []) or "none"
        raise Unmet(f"There is no subject {subject!r} yet. The registry's subjects: {known}.")
    return [client.get_version(subject, number) for number in numbers]


@parametrized
def has_type(ctx: CheckContext, subject: str, kind: str) -> None:
    """The latest schema of a subject must be of this type, ``AVRO``, ``PROTOBUF`` or ``JSON``."""
    schema_type = subject_versions(ctx, subject)[-1].schema.schema_type
    if schema_type != kind:
        raise Unmet(f"The schema of {subject} is of type {schema_type}, not {kind}. Which serializer registered it?")


def framed(client: SchemaRegistryClient, message: Message) -> tuple[Schema, int, bytes]:
    """Return a record's schema, its id, and the bytes after the five-byte header. The client asks once per id."""
    value = message.value() or b""
    where = f"The record at offset {message.offset()} of {message.topic()}"
    if len(value) < 6 or value[0] != 0:
        raise Unmet(f"{where} doesn't begin with a magic byte 0 and a schema id. What adds these five bytes to a value?")
    [schema_id] = struct.unpack(">I", value[1:5])
    schema = ask(client.get_schema, schema_id)
    if schema is None:
        raise Unmet(f"{where} carries the schema id {schema_id}, which the registry doesn't know.")
    return schema, schema_id, value[5:]


def field_names(schema_text: str) -> list[str]:
    """Return the names of an Avro record's fields."""
    schema = json.loads(schema_text)
    return [field["name"] for field in schema.get("fields", [])] if isinstance(schema, dict) else []


def avro_value(schema: Schema, payload: bytes, reader: dict[str, Any] | None = None) -> dict[str, Any]:
    """Decode a record with its writer's schema, or as a reader's schema sees it."""
    import fastavro

    try:
        value = fastavro.schemaless_reader(io.BytesIO(payload), json.loads(schema.schema_str or ""), reader)
    except Exception as error:  # any problem with the bytes or the schema
        raise Unmet(f"A record can't be read with its schema ({type(error).__name__}).") from error
    return value if isinstance(value, dict) else {}


def avro_bytes(schema: Schema, value: dict[str, Any]) -> bytes:
    """Encode a record with a schema."""
    import fastavro

    buffer = io.BytesIO()
    try:
        fastavro.schemaless_writer(buffer, json.loads(schema.schema_str or ""), value)
    except Exception as error:  # anything the learner's schema requires
        raise Unmet(f"{value} can't be written with your schema: {error}.") from error
    return buffer.getvalue()


def message_payload(rest: bytes) -> bytes:
    """Return what follows the list of message indexes, which Protobuf records have after the id."""
    try:
        count, position = decode_varint(rest)
        for _ in range(count):
            _, position = decode_varint(rest, position)
    except (IndexError, ValueError):
        raise Unmet("A record ends in the middle of its header.") from None
    return rest[position:]


def only_record(ctx: CheckContext, topic: str) -> Message:
    """Return a topic's record. Raise `Unmet` unless it holds just one."""
    records = filled(ctx, topic)
    if len(records) != 1:
        raise Unmet(f"{topic} holds {len(records)} records. One is enough. To begin afresh, run the cell that sends again.")
    return records[0]
