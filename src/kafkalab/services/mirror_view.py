"""A snapshot of MirrorMaker's flows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafkalab.services.mirror_status import Flow

__all__ = ["CopyView", "FlowView", "copies_of"]

_IDENTITY = "IdentityReplicationPolicy"


@dataclass(frozen=True)
class CopyView:
    """A topic and its copy.

    Attributes
    ----------
    topic, copy
        Their names.
    end, copy_end
        The sums of their partitions' end offsets.
    """

    topic: str
    copy: str
    end: int
    copy_end: int


@dataclass(frozen=True)
class FlowView:
    """A flow.

    Attributes
    ----------
    states
        As in `MirrorMaker.states`, without the flow's name.
    failures
        Why connectors and tasks failed, by the same names.
    copies
        The topics that have a copy.
    """

    flow: Flow
    states: Mapping[str, str]
    failures: Mapping[str, str]
    copies: tuple[CopyView, ...]


def copies_of(flow: Flow, settings: Mapping[str, str], source: Collection[str], target: Collection[str]) -> dict[str, str]:
    """Return the topics that a flow copies, each with the name of its copy, from the names of both clusters' topics."""

    def setting(name: str, default: str) -> str:
        return settings.get(f"{flow}.{name}", settings.get(name, default))

    prefix = f"{flow.source}{setting('replication.policy.separator', '.')}"
    if setting("replication.policy.class", "").endswith(_IDENTITY):
        prefix = ""
    wanted = [pattern.strip() for pattern in setting("topics", ".*").split(",")]
    copied = (topic for topic in sorted(source) if any(re.fullmatch(pattern, topic) for pattern in wanted))
    return {topic: f"{prefix}{topic}" for topic in copied if f"{prefix}{topic}" in target}
