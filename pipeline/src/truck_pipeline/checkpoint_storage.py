"""The files of a checkpoint, on any storage that Spark can write to."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import SparkSession

from truck_pipeline.checkpoint_storage_connect import SparkFiles
from truck_pipeline.checkpoint_storage_jvm import HadoopFiles
from truck_pipeline.session import has_jvm

__all__ = ["Files", "files"]


class Files(Protocol):
    """Files in a folder. They raise `OSError` if one can't be read."""

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a subfolder. Empty if there is no such folder."""

    def read(self, name: str) -> str:
        """Return a file's text."""

    def added(self, name: str) -> list[str]:
        """Return all texts that were added under a name."""

    def add(self, name: str, text: str) -> None:
        """Add a text under a name, as a whole or not at all, even if the process is killed meanwhile."""


def files(spark: SparkSession, folder: str) -> Files:
    """Return the files in a folder."""
    return HadoopFiles(spark, folder) if has_jvm(spark) else SparkFiles(spark, folder)
