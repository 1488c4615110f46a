"""Clusters: one interface, three back ends."""

from __future__ import annotations

import warnings

from kafkalab.lazy import on_first_use

# kafka-python reads a file for each type of message, in a way that Python warns of. Where warnings are errors, it would fail.
warnings.filterwarnings("ignore", "(read_text|open_text) is deprecated", DeprecationWarning)

_EXPORTS = {
    "LESSON_SETTINGS": "kafkalab.cluster.properties",
    "BrokerView": "kafkalab.cluster.view",
    "Cluster": "kafkalab.cluster.cluster",
    "ClusterSpec": "kafkalab.cluster.spec",
    "ClusterView": "kafkalab.cluster.view",
    "Fault": "kafkalab.cluster.view",
    "Features": "kafkalab.cluster.wire",
    "GroupView": "kafkalab.cluster.view",
    "Listener": "kafkalab.cluster.spec",
    "MemberView": "kafkalab.cluster.view",
    "PartitionView": "kafkalab.cluster.view",
    "ShareGroupView": "kafkalab.cluster.view",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)
