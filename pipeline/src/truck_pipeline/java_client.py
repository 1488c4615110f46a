"""Describe a topic with Kafka's Java client, in the session's JVM in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

__all__ = ["java_client"]

_TIMEOUTS = {"request.timeout.ms": "5000", "default.api.timeout.ms": "8000"}


@contextlib.contextmanager
def java_client(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[Callable[[str], tuple[str, bool]]]:
    """Yield a function that describes a topic, as `truck_pipeline.brokers.connect` has it."""
    context: Any = spark.sparkContext
    java = context._jvm
    client = java.java.util.HashMap()
    for setting, value in {**settings, **_TIMEOUTS}.items():
        client.put(setting, value)
    try:
        admin = java.org.apache.kafka.clients.admin.AdminClient.create(client)
        try:
            yield lambda name: _describe(java, admin, name)
        finally:
            admin.close()
    except Py4JJavaError as error:
        problem = _cause(error)
        if problem.getClass().getSimpleName() == "UnknownTopicOrPartitionException":
            raise LookupError from None
        raise ConnectionError(problem.getMessage()) from None


def _describe(java: Any, admin: Any, name: str) -> tuple[str, bool]:
    topic = admin.describeTopics(java.java.util.List.of(name)).allTopicNames().get().get(name)
    earliest = java.org.apache.kafka.clients.admin.OffsetSpec.earliest()
    partitions = java.java.util.HashMap()
    for partition in topic.partitions():
        partitions.put(java.org.apache.kafka.common.TopicPartition(name, partition.partition()), earliest)
    starts = admin.listOffsets(partitions).all().get().values()
    return topic.topicId().toString(), all(start.offset() == 0 for start in starts)


def _cause(error: Py4JJavaError) -> Any:
    problem = error.java_exception
    while (cause := problem.getCause()) is not None:
        problem = cause
    return problem
