"""Reach Kafka and the checkpoint's files through the session's JVM in this process, with the clients that Spark uses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

__all__ = ["HadoopFiles", "java_client"]

_PATIENCE = {"request.timeout.ms": "5000", "default.api.timeout.ms": "8000"}


@contextlib.contextmanager
def java_client(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[Callable[[str], tuple[str, bool]]]:
    """Yield a function that describes a topic, with Kafka's Java client: see `pipeline.reach.kafka`."""
    context: Any = spark.sparkContext
    java = context._jvm
    client = java.java.util.HashMap()
    for setting, value in {**settings, **_PATIENCE}.items():
        client.put(setting, value)
    try:
        admin = java.org.apache.kafka.clients.admin.AdminClient.create(client)
        try:
            yield lambda name: _described(java, admin, name)
        finally:
            admin.close()
    except Py4JJavaError as error:
        problem = _cause(error)
        if problem.getClass().getSimpleName() == "UnknownTopicOrPartitionException":
            raise LookupError from None
        raise ConnectionError(problem.getMessage()) from None


def _described(java: Any, admin: Any, name: str) -> tuple[str, bool]:
    topic = admin.describeTopics(java.java.util.List.of(name)).allTopicNames().get().get(name)
    earliest = java.org.apache.kafka.clients.admin.OffsetSpec.earliest()
    wanted = java.java.util.HashMap()
    for partition in topic.partitions():
        wanted.put(java.org.apache.kafka.common.TopicPartition(name, partition.partition()), earliest)
    begins = admin.listOffsets(wanted).all().get().values()
    return topic.topicId().toString(), all(found.offset() == 0 for found in begins)


def _cause(error: Py4JJavaError) -> Any:
    problem = error.java_exception
    while (cause := problem.getCause()) is not None:
        problem = cause
    return problem


class HadoopFiles:
    """Files in a folder, through the client that Spark uses for its checkpoints: see `pipeline.reach.Files`."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        context: Any = spark.sparkContext
        self._java, self._folder = context._jvm, folder
        managers = getattr(context._jvm.org.apache.spark.sql.execution.streaming, "CheckpointFileManager$")
        self._manager = getattr(managers, "MODULE$").create(self._path(""), context._jsc.hadoopConfiguration())

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a subfolder."""
        with _as_os_errors():
            return [path.getName() for path in self._listed(folder)]

    def read(self, name: str) -> str:
        """Return a file's text."""
        with _as_os_errors():
            return self._text(self._path(name))

    def added(self, name: str) -> list[str]:
        """Return all texts that were added under a name. Earlier versions of the pipeline had a single file there."""
        with _as_os_errors():
            return [self._text(path) for path in self._listed(name) if not path.getName().startswith(("_", "."))]

    def add(self, name: str, text: str) -> None:
        """Add a file that appears only when it's complete, as Spark does. A process killed while it writes leaves none."""
        with _as_os_errors():
            self._manager.mkdirs(self._path(name))
            stream = self._manager.createAtomic(self._path(f"{name}/{uuid4()}.json"), True)
            stream.write(text.encode())
            stream.close()

    def _listed(self, folder: str) -> list[Any]:
        path = self._path(folder)
        return [found.getPath() for found in self._manager.list(path)] if self._manager.exists(path) else []

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
