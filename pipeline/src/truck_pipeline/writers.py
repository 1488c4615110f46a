"""The writer schemas of a topic. Trucks may get new ones while the pipeline runs."""

from __future__ import annotations

from collections.abc import Collection

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from httpx2 import TransportError

from truck_pipeline.outage import retry
from truck_pipeline.settings import Settings

__all__ = ["NewSchema", "Writers"]

_NO_SUBJECT = 40401
_TIMEOUT = 5.0  # seconds for one answer


class NewSchema(Exception):
    """Raised in a batch with values of a schema that was registered after the stream's start. The stream must start again."""


class Writers:
    """The writer schemas of the topic of positions, as the registry has them.

    It remembers the topic's versions, which never change, and no ids of others. So values with made-up ids cost one request for
    each batch, and no memory.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._versions: dict[int, tuple[int, str]] = {}

    def ask(self) -> dict[int, str]:
        """Return the topic's schemas by registry id. Empty while nobody has registered one.

        Raises
        ------
        ConnectionError
            When the registry is away for more than `Settings.wait` seconds.
        """
        settings = self._settings
        retry(self._request, f"the registry at {settings.registry}", settings.wait, (TransportError, SchemaRegistryError))
        return dict(self._versions.values())

    def require_known(self, ids: Collection[int], known: Collection[int]) -> None:
        """Ask the registry about the schema ids of a batch that the stream doesn't know.

        Raises
        ------
        NewSchema
            When one of them is the topic's. All others are nobody's.
        ConnectionError
            When the registry is away for too long.
        """
        if ids and (new := self.ask().keys() & set(ids) - set(known)):
            raise NewSchema(f"new in the registry, with the ids {sorted(new)}")

    def _request(self) -> None:
        client = SchemaRegistryClient({**self._settings.registry_client(), "max.retries": 0, "timeout": _TIMEOUT})
        subject = f"{self._settings.positions}-value"
        try:
            numbers = client.get_versions(subject)
        except SchemaRegistryError as error:
            if error.error_code != _NO_SUBJECT:
                raise
            numbers = []
        for number in set(numbers) - self._versions.keys():
            version = client.get_version(subject, number)
            if version.schema_id is not None:
                self._versions[number] = (version.schema_id, str(version.schema.schema_str))
