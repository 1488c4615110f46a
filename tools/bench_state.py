"""A row of ``make bench``: what a stream pays for the ids that it remembers, in memory and in RocksDB."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from bench_figures import Measured, long_running_session, memory
from kafkalab import wait_until
from kafkalab.spark.session import jvm_process, kill_spark

_STORE = "spark.sql.streaming.stateStore."
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STORES: Mapping[str, Mapping[str, str]] = {
    "memory": {},
    "RocksDB": {f"{_STORE}providerClass": _ROCKS, f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true"},
}
HEAPS = {"memory": "8g", "RocksDB": "1g"}
IDS = 250_000  # new ones in each batch
SIZES = (1_000_000, 10_000_000)
LAST = 5  # batches before each size, of which the figures are


def stores() -> Measured:
    """A stream drops repeated ids, 36 characters each, and forgets none. What it reads costs nearly nothing."""
    for store, settings in STORES.items():
        with tempfile.TemporaryDirectory() as folder:
            spark = long_running_session(heap=HEAPS[store], settings=settings)
            query = _started(spark, folder)
            for size in SIZES:
                reports = _grown(query, size)
                for report in reports:
                    spent = report["durationMs"]["addBatch"] / IDS * 1000
                    yield f"an id more, {size:,} in {store}", "µs", spent
                yield f"Spark's memory for them (PSS), {size:,} in {store}", "MB", memory(jvm_process(spark).pid)
            query.stop()
            kill_spark(spark)  # the next one has a JVM of its own


def _started(spark: SparkSession, folder: str) -> StreamingQuery:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", IDS).load()
    ids = source.select(f.format_string("%036d", "value").alias("id")).dropDuplicates(["id"])
    return ids.writeStream.format("noop").option("checkpointLocation", folder).start()


def _grown(query: StreamingQuery, size: int) -> list[dict[str, Any]]:
    """Wait until the state has so many rows, and return the reports of the batches just before."""

    def done() -> list[dict[str, Any]]:
        known = [report for report in query.recentProgress if _rows(report) <= size]
        return known if known and _rows(known[-1]) == size else []

    return wait_until(done, 1200, "the state to grow", unless=query.exception, interval=1)[-LAST:]


def _rows(report: dict[str, Any]) -> int:
    return int(report["stateOperators"][0]["numRowsTotal"])
