"""``TopologyTestDriver``: run a topology without a broker, record by record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jpype

from kafkalab.settings import as_text, dotted
from kafkalab.streams.java import properties, use_java

__all__ = ["topology_test_driver"]


def topology_test_driver(topology: Callable[[Any], object], **settings: object) -> Any:
    """Create Kafka Streams' own ``TopologyTestDriver`` for a topology. Close it when you don't need it any more.

    Parameters
    ----------
    topology
        A function that gets a ``StreamsBuilder`` and builds the topology.
    **settings
        Settings of Kafka Streams, with underscores for dots. Keys and values are texts unless the topology says
        otherwise, as with `StreamsApp`.
    """
    use_java()
    streams = jpype.JPackage("org").apache.kafka.streams
    builder = streams.StreamsBuilder()
    topology(builder)
    return streams.TopologyTestDriver(builder.build(), properties(as_text(dotted(settings))))
