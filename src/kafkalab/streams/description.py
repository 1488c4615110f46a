"""Parse the text of ``Topology.describe()``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

__all__ = ["Node", "SubTopology", "parse"]

_SUB_TOPOLOGY = re.compile(r"\s*Sub-topology: (\d+)( for global store)?")
_NODE = re.compile(r"\s*(Source|Processor|Sink): (.+?) \((topics?|stores|extractor class): (.*)\)$")
_NEXT = re.compile(r"\s*--> (.*)$")


@dataclass(frozen=True)
class Node:
    """A source, a processor or a sink.

    Attributes
    ----------
    kind
        ``Source``, ``Processor`` or ``Sink``.
    name
        As Kafka Streams or the topology named it.
    topics
        Topics that a source reads (or their pattern), or that a sink writes. Empty if a function chooses the topic.
    stores
        State stores that a processor uses.
    followers
        Names of the nodes to which it passes records.
    """

    kind: str
    name: str
    topics: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubTopology:
    """Nodes that a task runs together. A global sub-topology has no tasks: each instance runs all of it."""

    number: int
    is_global: bool
    nodes: tuple[Node, ...]


def parse(description: str) -> list[SubTopology]:
    """Return the sub-topologies of a description, in its order."""
    sub_topologies: list[tuple[int, bool, list[Node]]] = []
    for line in description.splitlines():
        if match := _SUB_TOPOLOGY.match(line.removeprefix("Topologies:")):
            sub_topologies.append((int(match[1]), match[2] is not None, []))
        elif match := _NODE.match(line):
            kind, name, attribute, values = match.groups()
            names = () if attribute == "extractor class" else _names(values)
            sub_topologies[-1][2].append(
                Node(kind, name, stores=names) if attribute == "stores" else Node(kind, name, topics=names)
            )
        elif match := _NEXT.match(line):
            nodes = sub_topologies[-1][2]
            nodes[-1] = replace(nodes[-1], followers=_names(match[1]))
    return [SubTopology(number, is_global, tuple(nodes)) for number, is_global, nodes in sub_topologies]


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name for name in listed.removeprefix("[").removesuffix("]").split(", ") if name and name != "none")
