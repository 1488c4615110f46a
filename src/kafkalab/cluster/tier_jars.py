"""The jars of the remote tier's storage manager: Kafka's own, and a class of the course's that can find the tier full."""

from __future__ import annotations

import os
from pathlib import Path

from kafkalab.distribution import classpath, ensure_jars
from kafkalab.distribution.javac import jar_in_cache

__all__ = ["TRANSFERER", "tier_jars"]

TRANSFERER = "kafkalab.TierTransferer"
"""The class that copies a segment's files into the tier."""

_SOURCE = Path(__file__).with_name("TierTransferer.java")


def tier_jars() -> list[Path]:
    """Return the jars, compiling the course's own class on first use.

    Raises
    ------
    JavaError
        If it doesn't compile.
    DownloadError, HashMismatch
        If a jar isn't in the cache and can't be downloaded, or doesn't match the lock.
    KafkaLabError
        If the cache can't be written.
    """
    kafka = ensure_jars("tiered")
    classes = os.pathsep.join((classpath(), *map(str, kafka)))
    sources = {_SOURCE.stem: _SOURCE.read_text(encoding="utf-8")}
    return [*kafka, jar_in_cache("remote-tier", sources, {}, classes, ("kafka", "tiered"))]
