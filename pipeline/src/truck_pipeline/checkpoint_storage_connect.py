"""The files of a checkpoint over Spark Connect, where this process has no JVM."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkFiles"]

_SCHEME = re.compile(r"^\w+:(//[^/]*)?")  # in front of a path, with the host


class SparkFiles:
    """Files in a folder, read and written by queries.

    Spark finds neither empty folders nor names that begin with a dot or an underscore.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark, self._folder = spark, folder.rstrip("/")

    def names(self, folder: str = "") -> list[str]:
        path = f"{self._folder}/{folder}".rstrip("/")
        try:
            with _as_os_errors():
                files = [_SCHEME.sub("", row.path) for row in self._files(path).select("path").collect()]
        except FileNotFoundError:
            return []
        prefix = f"{_SCHEME.sub('', path)}/"
        return sorted({file.partition(prefix)[2].partition("/")[0] for file in files})

    def read(self, name: str) -> str:
        [text] = self._texts(name)
        return text

    def added(self, name: str) -> list[str]:
        return self._texts(name)

    def add(self, name: str, text: str) -> None:
        row = self._spark.createDataFrame([(text,)], "value STRING")
        with _as_os_errors():
            # One row is one file, which appears only when it's complete.
            row.coalesce(1).write.mode("append").text(f"{self._folder}/{name}")

    def _texts(self, name: str) -> list[str]:
        with _as_os_errors():
            rows = self._files(f"{self._folder}/{name}").select("content").collect()
        return [bytes(row.content).decode() for row in rows]

    def _files(self, path: str) -> DataFrame:
        """Return all files below a folder. Files may vanish meanwhile, such as those of a running stream."""
        options = {"recursiveFileLookup": True, "ignoreMissingFiles": True}
        return self._spark.read.format("binaryFile").options(**options).load(path)


@contextlib.contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        missing = isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND"
        raise (FileNotFoundError if missing else OSError)(str(error).splitlines()[0]) from None
