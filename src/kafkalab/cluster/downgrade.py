"""Refuse to start a node with a Kafka version that can't read the cluster's metadata log."""

from __future__ import annotations

from kafkalab.cluster.wire import Features
from kafkalab.distribution import highest_metadata_version
from kafkalab.errors import DowngradeRefused

__all__ = ["is_older", "require_readable"]

_FEATURE = "metadata.version"  # the feature that each release raises; the others depend on its level


def is_older(version: str, than: str) -> bool:
    """Whether a Kafka version came before another."""
    return _numbers(version) < _numbers(than)


def require_readable(node: str, version: str, reported: dict[int, Features]) -> None:
    """Check an older version for a node, such as "broker 2", against the finalized level that the running brokers report.

    Raises
    ------
    DowngradeRefused
        If the version doesn't support that level. The message names both.
    """
    finalized = max((features.finalized.get(_FEATURE, 0) for features in reported.values()), default=0)
    highest = highest_metadata_version(version)
    if highest is not None and finalized > highest:
        raise DowngradeRefused(
            f"{node.capitalize()} can't go back to Kafka {version}. The cluster has finalized level {finalized} of {_FEATURE}, "
            f"and {version} reads the metadata log only up to level {highest}. Starting older nodes doesn't lower a finalized "
            f"level. Nothing was stopped. Use a version that supports level {finalized}."
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
