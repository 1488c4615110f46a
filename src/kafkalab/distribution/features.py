"""Feature levels that come with a Kafka version."""

from __future__ import annotations

import functools
import re

from kafkalab.distribution.tools import run_tool
from kafkalab.errors import JavaError
from kafkalab.exits import exit_status, signal_of

__all__ = ["highest_metadata_version"]

_LEVEL = re.compile(r"^metadata\.version=(\d+)", re.MULTILINE)


@functools.lru_cache(maxsize=8)
def highest_metadata_version(version: str) -> int | None:
    """Return the highest level of ``metadata.version`` that a Kafka version supports.

    ``kafka-features version-mapping`` of the course's Kafka knows it. None if that doesn't know the version.

    Raises
    ------
    JavaError
        If something killed the tool.
    """
    result = run_tool("kafka-features", "version-mapping", "--release-version", version)
    if signal_of(result.returncode):
        raise JavaError(f"kafka-features can't say what Kafka {version} supports: it was {exit_status(result.returncode)}")
    match = _LEVEL.search(result.stdout)
    return int(match[1]) if match else None
