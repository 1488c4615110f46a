"""For Spark Connect: reach Kafka through this process's own client, and the checkpoint's files through queries."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkFiles", "own_client"]

_TIMEOUT = 5.0  # seconds for one answer
_AS_JAVA = str.maketrans("+/", "-_")  # how it writes an id
_PLACE = re.compile(r"^\w+:(//[^/]*)?")  # in front of a path


@contextlib.contextmanager
def own_client(settings: Mapping[str, Any]) -> Iterator[Callable[[str], tuple[str, bool]]]:
    """Yield a function that describes a topic, with librdkafka: see `pipeline.reach.kafka`."""
    problems: list[KafkaError] = []
    quiet: dict[str, Any] = {"error_cb": problems.append, "log_level": 2}  # it would write each vain attempt to standard error
    try:
        admin = AdminClient({**settings, **quiet})
        try:
            yield lambda name: _described(admin, name)
        finally:
            admin.poll(0)  # now it tells what went wrong
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise LookupError from None
        told = [problem.str() for problem in problems if problem.code() != KafkaError._ALL_BROKERS_DOWN]
        raise ConnectionError(told[-1] if told else error.args[0].str()) from None


def _described(admin: AdminClient, name: str) -> tuple[str, bool]:
    topic = admin.describe_topics(TopicCollection([name]), request_timeout=_TIMEOUT)[name].result()
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call] # the client's own lack of types
    wanted = {TopicPartition(name, partition.id): earliest for partition in topic.partitions}
    begins = admin.list_offsets(wanted, request_timeout=_TIMEOUT).values()
    return str(topic.topic_id).translate(_AS_JAVA), all(found.result().offset == 0 for found in begins)


class SparkFiles:
    """Files in a folder of the server's storage, which queries read and write: see `pipeline.reach.Files`.

    Spark finds neither empty folders nor names that begin with a dot or an underscore.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark, self._folder = spark, folder.rstrip("/")

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a subfolder."""
        path = f"{self._folder}/{folder}".rstrip("/")
        try:
            with _as_os_errors():
                found = [_PLACE.sub("", row.path) for row in self._files(path).select("path").collect()]
        except FileNotFoundError:
            return []
        before = f"{_PLACE.sub('', path)}/"
        return sorted({file.partition(before)[2].partition("/")[0] for file in found})

    def read(self, name: str) -> str:
        """Return a file's text."""
        [text] = self._texts(name)
        return text

    def added(self, name: str) -> list[str]:
        """Return all texts that were added under a name."""
        return self._texts(name)

    def add(self, name: str, text: str) -> None:
        """Append a row. Its file appears only when it's complete, so a process that is killed while it writes leaves none."""
        row = self._spark.createDataFrame([(text,)], "value STRING")
        with _as_os_errors():
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
