"""The files of a checkpoint, through the session's JVM in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

__all__ = ["HadoopFiles"]


class HadoopFiles:
    """Files in a folder, with Hadoop's client for file systems, which Spark itself uses."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        context: Any = spark.sparkContext
        self._java, self._folder = context._jvm, folder
        self._system = self._path("").getFileSystem(context._jsc.hadoopConfiguration())

    def names(self, folder: str = "") -> list[str]:
        with _as_os_errors():
            return [path.getName() for path in self._list(folder)]

    def read(self, name: str) -> str:
        with _as_os_errors():
            return self._text(self._path(name))

    def added(self, name: str) -> list[str]:
        # Earlier versions of the pipeline had a single file instead of a folder: the list holds it, too.
        with _as_os_errors():
            return [self._text(path) for path in self._list(name) if not path.getName().startswith(("_", "."))]

    def add(self, name: str, text: str) -> None:
        with _as_os_errors():
            # A file that appears by being renamed is always complete. Names with a dot in front don't count as files.
            draft = self._path(f"{name}/.{uuid4()}")
            with contextlib.closing(self._system.create(draft)) as stream:
                stream.write(text.encode())
            if not self._system.rename(draft, self._path(f"{name}/{uuid4()}.json")):
                raise OSError(f"{draft} can't be renamed")

    def _list(self, folder: str) -> list[Any]:
        path = self._path(folder)
        return [status.getPath() for status in self._system.listStatus(path)] if self._system.exists(path) else []

    def _text(self, path: Any) -> str:
        with contextlib.closing(self._system.open(path)) as stream:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))

    def _path(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self._folder}/{name}" if name else self._folder)


@contextlib.contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise OSError(error.java_exception.toString()) from None
