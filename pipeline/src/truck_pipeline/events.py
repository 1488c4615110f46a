"""The Avro schema of events."""

from __future__ import annotations

import json
from collections.abc import Callable

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from truck_pipeline.settings import Settings
from truck_pipeline.trucks import Event

__all__ = ["SCHEMA", "encoder"]

SCHEMA = json.dumps({
    "type": "record",
    "name": "TruckEvent",
    "namespace": "trucks",
    "fields": [
        {"name": "timestamp", "type": "long"},
        {"name": "truckId", "type": "int"},
        {"name": "driverId", "type": "int"},
        {"name": "routeId", "type": "long"},
        {"name": "eventType", "type": "string"},
        {"name": "latitude", "type": "double"},
        {"name": "longitude", "type": "double"},
        {"name": "correlationId", "type": "string"},
    ],
})  # fmt: skip
"""The reader schema of this version of the pipeline."""

_FIELDS = [field["name"] for field in json.loads(SCHEMA)["fields"]]


def encoder(settings: Settings) -> Callable[[Event], bytes]:
    """Return a function that encodes events for the topic of positions: a zero byte, four bytes of schema id, then Avro.

    Its first call registers the schema, for the topic's subject.
    """
    serializer = AvroSerializer(
        SchemaRegistryClient(settings.registry_client()), SCHEMA, lambda event, _: dict(zip(_FIELDS, event, strict=True))
    )
    context = SerializationContext(settings.positions, MessageField.VALUE)

    def encode(event: Event) -> bytes:
        value: bytes = serializer(event, context)
        return value

    return encode
