"""The Avro schema of events, and its versions in the registry."""

from __future__ import annotations

import json
from collections.abc import Callable

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext
from httpx2 import TransportError

from truck_pipeline.outage import retry
from truck_pipeline.trucks import Event

__all__ = ["SCHEMA", "encoder", "written_schemas"]

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

_NO_SUBJECT = 40401
_TIMEOUT = 5.0  # seconds for one answer

_FIELDS = [field["name"] for field in json.loads(SCHEMA)["fields"]]


def encoder(registry: str, topic: str) -> Callable[[Event], bytes]:
    """Return a function that encodes events for a topic: a zero byte, four bytes of schema id, then Avro.

    Its first call registers the schema at the registry's URL, for the topic's subject.
    """
    serializer = AvroSerializer(
        SchemaRegistryClient({"url": registry}), SCHEMA, lambda event, _: dict(zip(_FIELDS, event, strict=True))
    )
    context = SerializationContext(topic, MessageField.VALUE)

    def encode(event: Event) -> bytes:
        value: bytes = serializer(event, context)
        return value

    return encode


def written_schemas(registry: str, topic: str, wait: float = 60) -> dict[int, str]:
    """Return the writer schemas of a topic's values, by registry id. Empty while nobody has registered one.

    Raises
    ------
    ConnectionError
        When the registry doesn't answer, and doesn't come back within `wait` seconds.
    """
    client = SchemaRegistryClient({"url": registry, "max.retries": 0, "timeout": _TIMEOUT})
    subject = f"{topic}-value"

    def request() -> dict[int, str]:
        try:
            versions = [client.get_version(subject, number) for number in client.get_versions(subject)]
        except SchemaRegistryError as error:
            if error.error_code == _NO_SUBJECT:
                return {}
            raise
        return {version.schema_id: str(version.schema.schema_str) for version in versions if version.schema_id is not None}

    return retry(request, f"the registry at {registry}", wait, (TransportError, SchemaRegistryError))
