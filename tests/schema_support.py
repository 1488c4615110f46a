"""What tests of labs with a schema registry use: the registry, schemas, and records framed with their ids."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kafkalab import Cluster, SchemaRegistry
from support import create, put

__all__ = ["AGE", "BOB", "V1", "V2", "Registered", "avro", "record"]


class Registered(NamedTuple):
    """A cluster of one broker, its registry, and a client of that."""

    cluster: Cluster
    registry: SchemaRegistry
    client: SchemaRegistryClient

    def fill(self, topic: str, values: Sequence[bytes], keys: Sequence[bytes | None] | None = None) -> None:
        """Create a topic of one partition with these values."""
        create(self.cluster, topic, 1, copies=1)
        self.add(topic, values, keys)

    def add(self, topic: str, values: Sequence[bytes], keys: Sequence[bytes | None] | None = None) -> None:
        """Send values to a topic's partition 0."""
        put(self.cluster, topic, [(key, value, 0) for key, value in zip(keys or [None] * len(values), values, strict=True)])

    def framed(self, subject: str, payload: bytes) -> bytes:
        """A payload behind the header with the id of a subject's latest schema."""
        return struct.pack(">bI", 0, self.client.get_latest_version(subject).schema_id) + payload

    def avro_writer(self, topic: str, schema: dict[str, Any]) -> Callable[[dict[str, Any]], bytes]:
        """Serializes values for a topic, and registers their schema."""
        serialize = AvroSerializer(self.client, json.dumps(schema))
        return lambda value: serialize(value, SerializationContext(topic, MessageField.VALUE))

    def forget(self, subject: str) -> None:
        """Delete a subject for good: that is a second step."""
        self.client.delete_subject(subject)
        self.client.delete_subject(subject, permanent=True)


def record(*fields: str | dict[str, Any]) -> dict[str, Any]:
    """An Avro record; a field that is given by its name only is a string."""
    named = [f if isinstance(f, dict) else {"name": f, "type": "string"} for f in fields]
    return {"type": "record", "name": "Employee", "fields": named}


def avro(schema: dict[str, Any]) -> Schema:
    """An Avro schema as a registry takes it."""
    return Schema(json.dumps(schema), "AVRO")


AGE = {"name": "age", "type": "int", "default": -1}
V1, V2 = record("firstName", "lastName"), record("firstName", "lastName", AGE)
PHONE = {"countryCode": "1", "areaCode": "301", "prefix": "555", "number": "1234"}
BOB: dict[str, Any] = {"firstName": "Bob", "lastName": "Jones", "age": 35, "phoneNumber": PHONE}
