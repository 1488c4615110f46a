"""What a check can look at in a schema registry, and in records that were written with its schemas."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kafkalab.checks.common import answer
from kafkalab.checks.lab import Unmet
from kafkalab.checks.sight import Sight

if TYPE_CHECKING:
    from confluent_kafka import Message
    from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient

__all__ = ["ask", "avro_value", "client_of", "framed", "message_payload", "subject_versions"]

T = TypeVar("T")


def client_of(sight: Sight) -> SchemaRegistryClient:
    """A client of the learner's registry, which knows nothing yet. One is enough for all records: making it takes a while."""
    from confluent_kafka.schema_registry import SchemaRegistryClient  # loads an HTTP client, which few labs need

    registry = answer(sight, "registry", "your registry")
    return SchemaRegistryClient({"url": registry.url, "timeout": 10})  # type: ignore[attr-defined]


def ask(question: Callable[..., T], *given: object) -> T | None:
    """What the registry answers to a method of the client, or None where it says that there is no such thing.

    Raises
    ------
    Unmet
        When it does not answer.
    """
    import httpx2
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    try:
        return question(*given)
    except SchemaRegistryError as error:
        if error.http_status_code == 404:
            return None
        raise Unmet(f"The registry answers HTTP {error.http_status_code}: {error.error_message}") from error
    except httpx2.TransportError as error:
        raise Unmet("The registry does not answer. Is it running?") from error


def subject_versions(sight: Sight, subject: str) -> list[RegisteredSchema]:
    """All versions of a subject that must be there, in order."""
    client = client_of(sight)
    numbers = ask(client.get_versions, subject)
    if not numbers:
        raise Unmet(f"There is no subject {subject!r} yet. The registry's subjects: {', '.join(ask(client.get_subjects) or []) or 'none'}.")
    return [client.get_version(subject, number) for number in numbers]


def framed(client: SchemaRegistryClient, message: Message) -> tuple[Schema, int, bytes]:
    """The schema of a record, its id, and what follows the header of five bytes. The client asks once for each id."""
    value = message.value() or b""
    where = f"The record at offset {message.offset()} of {message.topic()}"
    if len(value) < 6 or value[0] != 0:
        raise Unmet(f"{where} has no header: a magic byte 0 and the schema's id. Who puts it there?")
    [schema_id] = struct.unpack(">I", value[1:5])
    schema = ask(client.get_schema, schema_id)
    if schema is None:
        raise Unmet(f"{where} has a schema id that the registry does not know.")
    return schema, schema_id, value[5:]


def avro_value(schema: Schema, payload: bytes, reader: dict | None = None) -> dict:
    """A record, as its writer's schema says, or as a reader's schema sees it."""
    import io

    import fastavro

    try:
        return fastavro.schemaless_reader(io.BytesIO(payload), json.loads(schema.schema_str), reader)  # type: ignore[return-value, arg-type]
    except Exception as error:  # whatever is wrong with bytes or schema
        raise Unmet(f"A record cannot be read as its schema says ({type(error).__name__}).") from error


def message_payload(rest: bytes) -> bytes:
    """What follows the list of message indexes, with which Protobuf records go on after the id."""
    count, at = _number(rest, 0)
    for _ in range(count):
        _, at = _number(rest, at)
    return rest[at:]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, its sign in the last bit; and where it ends."""
    value = shift = 0
    while True:
        if at == len(data):
            raise Unmet("A record ends in the middle of its header.")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at
