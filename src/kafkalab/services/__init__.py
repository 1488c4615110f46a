"""Real servers to run beside a cluster: Connect, MirrorMaker, a schema registry, PostgreSQL, an MQTT broker and a KDC."""

from __future__ import annotations

from kafkalab.lazy import on_first_use

_EXPORTS = {
    "ConnectCluster": "kafkalab.services.connect",
    "MiniKdc": "kafkalab.services.kdc",
    "MirrorMaker": "kafkalab.services.mirror",
    "MqttBroker": "kafkalab.services.mqtt",
    "PostgreSQL": "kafkalab.services.postgresql",
    "SchemaRegistry": "kafkalab.services.schema_registry",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)
