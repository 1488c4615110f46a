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
    """Files in a folder, with the client that Spark itself uses for checkpoints."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        context: Any = spark.sparkContext
        self._java, self._folder = context._jvm, folder
        managers = getattr(context._jvm.org.apache.spark.sql.execution.streaming, "CheckpointFileManager$")
        self._manager = getattr(managers, "MODULE$").create(self._path(""), context._jsc.hadoopConfiguration())

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
            self._manager.mkdirs(self._path(name))
            # As Spark writes them: a file appears only when it's complete.
            stream = self._manager.createAtomic(self._path(f"{name}/{uuid4()}.json"), True)
            stream.write(text.encode())
            stream.close()

    def _list(self, folder: str) -> list[Any]:
        path = self._path(folder)
        return [status.getPath() for status in self._manager.list(path)] if self._manager.exists(path) else []

    def _text(self, path: Any) -> str:
        with contextlib.closing(self._manager.open(path)) as stream:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))

    def _path(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self._folder}/{name}" if name else self._folder)


@contextlib.contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise OSError(error.java_exception.toString()) from None
