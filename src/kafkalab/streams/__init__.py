"""Kafka Streams, the real library, from Python: as a process that can be killed, and step by step in a notebook.

JPype runs Java within a Python process. So a topology is written in Python with Kafka Streams' own classes
(``from org.apache.kafka.streams import StreamsBuilder``), and a Python function may be a predicate, a mapper or a joiner.

A process can start only one JVM, and only once. So each application is a process of its own, which `StreamsApp` starts, kills
and queries. ``TopologyTestDriver`` needs neither brokers nor restarts, so it runs in the notebook's own process, where you can
look at its records one by one. `topology_test_driver` creates one.
"""

from __future__ import annotations

from kafkalab.lazy import on_first_use

_EXPORTS = {
    "StreamsApp": "kafkalab.streams.app",
    "fresh_topics": "kafkalab.streams.fresh",
    "topology_test_driver": "kafkalab.streams.driver",
    "use_java": "kafkalab.streams.java",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)
