"""What ``Topology.describe()`` says, as a picture."""

from __future__ import annotations

from typing import Protocol

from kafkalab.streams.description import parse
from kafkalab.widgets.picture import Picture
from kafkalab.widgets.topology_drawing import topology_html, topology_text

__all__ = ["TopologyMap"]


class Topology(Protocol):
    """What the picture needs: a `StreamsApp` has it, and so has Kafka Streams' own ``Topology``."""

    def describe(self) -> object: ...


class TopologyMap(Picture):
    """A still picture of a topology: its sub-topologies with sources, processors and sinks, their topics and state stores.

    Names are Kafka Streams' own, without the zeros of their numbers; a box that is too narrow for a name shows it when you
    point at it. Names of repartition topics lack the ``application.id`` that they have in the cluster, as in the description.

    Parameters
    ----------
    topology
        A `StreamsApp` that was started, or what ``StreamsBuilder.build()`` returns.
    """

    def __init__(self, topology: Topology) -> None:
        subs = parse(str(topology.describe()))
        super().__init__(topology_html(subs), topology_text(subs))
