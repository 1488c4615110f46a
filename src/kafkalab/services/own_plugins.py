"""The course's own connectors and converter: Java sources that a learner can read, compiled on first use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafkalab.distribution import Report, connect_classpath, ensure_jars
from kafkalab.distribution.javac import jar_in_cache

__all__ = ["AVRO_CONVERTER", "JDBC", "MQTT_SOURCE", "OWN_PLUGINS", "SOURCE_CONNECTOR", "OwnPlugin"]

SOURCE_CONNECTOR = "org.apache.kafka.connect.source.SourceConnector"
_CONVERTER = "org.apache.kafka.connect.storage.Converter"
_SINK_CONNECTOR = "org.apache.kafka.connect.sink.SinkConnector"
_FOLDER = Path(__file__).with_name("plugins")


@dataclass(frozen=True)
class OwnPlugin:
    """A plug-in that is compiled from sources of this package.

    Attributes
    ----------
    name
        Name of its folder in a worker's plug-in folder.
    group
        Group of locked jars that it needs.
    services
        What each class that Connect loads implements: a connector or a converter.
    helpers
        Further classes that these use.
    """

    name: str
    group: str
    services: Mapping[str, str]
    helpers: tuple[str, ...] = ()

    def sources(self) -> dict[str, str]:
        """Return its Java sources by class."""
        return {name: (_FOLDER / f"{name}.java").read_text(encoding="utf-8") for name in (*self.helpers, *self.services)}

    def jars(self, report: Report | None = None) -> list[Path]:
        """Return its jars. Compile its sources on first use, and take the jar from the cache after that.

        Raises
        ------
        JavaError
            When it doesn't compile.
        DownloadError, HashMismatch
            When a jar isn't in the cache and cannot be downloaded, or is not what was locked.
        KafkaLabError
            When the cache can't be written.
        """
        needed = ensure_jars(self.group, report)
        services = {f"kafkalab.{name}": service for name, service in self.services.items()}
        classes = os.pathsep.join((connect_classpath(report), *map(str, needed)))
        return [*needed, jar_in_cache(self.name, self.sources(), services, classes, ("kafka", "mirror", self.group), report)]


MQTT_SOURCE = OwnPlugin("mqtt-source", "mqtt-client", {"MqttSourceConnector": SOURCE_CONNECTOR})
"""A source for MQTT."""

JDBC = OwnPlugin("jdbc", "jdbc", {"JdbcSourceConnector": SOURCE_CONNECTOR, "JdbcSinkConnector": _SINK_CONNECTOR}, ("Database",))
"""A source that polls a table of PostgreSQL, and a sink that writes rows."""

AVRO_CONVERTER = OwnPlugin("avro-converter", "avro", {"AvroConverter": _CONVERTER}, ("AvroData", "Registry"))
"""A converter to Avro and back, which keeps its schemas in a registry."""

OWN_PLUGINS = {plugin.name: plugin for plugin in (AVRO_CONVERTER, JDBC, MQTT_SOURCE)}
"""All these plug-ins, by name."""
