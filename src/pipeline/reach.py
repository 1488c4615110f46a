"""Reach Kafka and the checkpoint's files from outside the pipeline's own queries.

If the session has a JVM in this process, the JVM does it. Over Spark Connect there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import SparkSession

from pipeline.client import as_librdkafka
from pipeline.reach_connect import SparkFiles, own_client
from pipeline.reach_jvm import HadoopFiles, java_client

__all__ = ["Files", "files", "kafka"]


class Files(Protocol):
    """Files in a folder on any storage that Spark can write to. An `OSError` tells why one can't be read."""

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a subfolder. Empty if there is no such folder."""

    def read(self, name: str) -> str:
        """Return a file's text."""

    def added(self, name: str) -> list[str]:
        """Return all texts that were added under a name."""

    def add(self, name: str, text: str) -> None:
        """Add a text under a name. It's there as a whole or not at all."""


def kafka(spark: SparkSession, settings: Mapping[str, str]) -> AbstractContextManager[Callable[[str], tuple[str, bool]]]:
    """Connect to Kafka. The context's function returns a topic's id, and whether it still has every record ever sent to it.

    Parameters
    ----------
    spark
        A session with Spark's Kafka connector.
    settings
        Settings of a Java client.

    Raises
    ------
    ConnectionError
        When no broker answers within some seconds, or Kafka refuses the login; or when the settings are for Java alone, and
        there is none.
    LookupError
        Within, when the topic isn't there.
    """
    return java_client(spark, settings) if _has_jvm(spark) else own_client(as_librdkafka(settings))


def files(spark: SparkSession, folder: str) -> Files:
    """Return the files in a folder."""
    return HadoopFiles(spark, folder) if _has_jvm(spark) else SparkFiles(spark, folder)


def _has_jvm(spark: SparkSession) -> bool:
    return isinstance(spark, SparkSession)  # one of Spark Connect only looks like that
