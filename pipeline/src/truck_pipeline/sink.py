"""What the stream does with a batch: it stores answers in the tables, and writes alarms and dead letters to their topics."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import pyarrow as pa
from pyarrow import compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from truck_pipeline import transform
from truck_pipeline.settings import Settings
from truck_pipeline.tables import Batch, Tables
from truck_pipeline.trucks import NORMAL
from truck_pipeline.writers import Writers

__all__ = ["ALARM", "Drivers", "Sink", "alarm_records"]

ALARM = (
    "correlationId",
    "time",
    "eventType",
    "truckId",
    "driverId",
    "first_name",
    "last_name",
    "latitude",
    "longitude",
    "sent",
)
"""Columns of an alarm, in the order of the table's."""


class Sink:
    """Takes the stream's batches. A repeated batch writes its records to the topics again, and leaves the tables as they are.

    Each batch costs one job of Spark's, which brings to this process what the batch answers, and no event itself. Another one
    follows where there are alarms to send, and a third where there are dead letters.

    Parameters
    ----------
    settings
        Topics, servers and limits.
    tables
        Where the answers go.
    schemas
        Ids of the schemas that the stream decodes.

    Raises
    ------
    ConnectionError
        By a batch, when PostgreSQL or the registry is away for too long. Nothing is half stored.
    NewSchema
        By a batch with values of a schema that the registry knows and the stream doesn't.
    """

    def __init__(self, settings: Settings, tables: Tables, schemas: Collection[int]) -> None:
        self._settings, self._tables, self._schemas = settings, tables, frozenset(schemas)
        self._writers, self._drivers = Writers(settings), Drivers(settings)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Take a batch."""
        spark, settings = rows.sparkSession, self._settings
        found = _collected(rows, self._drivers.table(spark), settings.window)
        if not found.num_rows:  # Spark only removes old state
            return
        events, dead = found.filter(pc.is_null(found["dead"])), found.filter(pc.is_valid(found["dead"])).select(["dead"])
        if dead.num_rows:
            self._writers.require_known(_unknown_ids(dead), self._schemas)
            letters = transform.dead_letters(spark.createDataFrame(dead))
            letters.write.format("kafka").options(**settings.sink(settings.dead_letters)).save()
        alarms = _fields(events["alarm"])
        if alarms.num_rows:
            records = alarm_records(spark.createDataFrame(alarms))
            records.write.format("kafka").options(**settings.sink(settings.dangerous)).save()
        self._tables.put(_facts(batch, events, dead.num_rows), _per_window(events), alarms)


def alarm_records(alarms: DataFrame) -> DataFrame:
    """Turn dangerous events into records: the correlation id as the key, and the event with its driver's name in JSON."""
    return alarms.select(f.col("correlationId").alias("key"), f.to_json(f.struct("*")).alias("value"))


def _collected(rows: DataFrame, drivers: DataFrame, window: str) -> pa.Table:
    """Bring to this process what a batch says, in one job: what is counted, and more only for alarms and the dead."""
    named = rows.join(f.broadcast(drivers), "driverId", "left")
    alarm = f.when(f.col("eventType") != NORMAL, f.struct(*ALARM))
    starts = transform.windows(window).alias("starts")
    return named.select(starts, "driverId", "sent", "clock", alarm.alias("alarm"), "dead").toArrow()


def _facts(number: int, events: pa.Table, dead: int) -> Batch:
    sent = pc.array_sort_indices(events["sent"])
    first, half = (events["sent"][sent[len(sent) * part // 100].as_py()].as_py() if len(sent) else None for part in (1, 50))
    return Batch(number, events.num_rows, dead, pc.max(events["clock"]).as_py(), half, first)


def _per_window(events: pa.Table) -> pa.Table:
    """Count events of each driver in each window, and the alarms among them, as `transform.per_window` does in Spark."""
    rows = pa.table({
        "starts": events["starts"], "driverId": events["driverId"], "alarm": pc.is_valid(events["alarm"]).cast(pa.int64())
    })  # fmt: skip
    counts = rows.group_by(["starts", "driverId"]).aggregate([([], "count_all"), ("alarm", "sum")])
    return counts.select(["starts", "driverId", "count_all", "alarm_sum"]).rename_columns(
        ["starts", "driverId", "events", "dangerous"]
    )


def _fields(column: pa.ChunkedArray) -> pa.Table:
    """Return the fields of a column of structs as a table, without rows in which it's null."""
    return pa.Table.from_struct_array(pc.drop_null(column).combine_chunks())


def _unknown_ids(dead: pa.Table) -> set[int]:
    """Return the ids of schemas that the stream doesn't know, in values that have one."""
    records = _fields(dead["dead"])
    values = records.filter(pc.equal(records["reason"], transform.UNKNOWN_SCHEMA))["value"]
    return {int.from_bytes(value[1:5], "big") for value in pc.binary_slice(values, 0, 5).to_pylist()}


class Drivers:
    """The table of drivers, read from its topic again whenever it's older than `Settings.refresh` seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read: float = -float("inf")
        self._rows: Any = None

    def table(self, spark: SparkSession) -> DataFrame:
        """Return ids and names."""
        if time.monotonic() - self._read >= self._settings.refresh:
            records = spark.read.format("kafka").options(**self._settings.source(self._settings.drivers)).load()
            drivers = transform.latest_drivers(records)
            named = drivers.select(f.col("id").alias("driverId"), "first_name", "last_name")
            self._rows, self._read = named.toArrow(), time.monotonic()
        return spark.createDataFrame(self._rows)
