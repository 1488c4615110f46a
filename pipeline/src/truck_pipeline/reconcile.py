"""Add to the stream's tables what the stream dropped because it came later than `Settings.patience`. The lake has it."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from truck_pipeline import transform
from truck_pipeline.lake import Lake
from truck_pipeline.names import Drivers
from truck_pipeline.retention import final, kept_since
from truck_pipeline.settings import Settings
from truck_pipeline.sink import alarms_of
from truck_pipeline.tables import Tables

__all__ = ["reconcile"]

_COUNTED = "SELECT starts, driver, events, late FROM {{schema}}.driving WHERE starts BETWEEN '{}' AND '{}'"
_LATE = "SELECT COALESCE(sum(late), 0)::BIGINT FROM {schema}.driving"

_COUNTED_COLUMNS = pa.schema([
    ("starts", pa.timestamp("us", "UTC")), ("driverId", pa.int32()), ("counted", pa.int64()), ("late", pa.int64())
])  # fmt: skip


def reconcile(spark: SparkSession, settings: Settings, lake: Lake, tables: Tables) -> int:
    """Count the events that the stream dropped as late, and add them and their alarms to the tables.

    Fill the lake first. The stream may run meanwhile. Only windows that end before the watermark are compared: the stream adds
    nothing to them any more, so what gold counts beyond the stream's count is late. Windows that the tables no longer keep
    aren't compared. If they keep all, each call compares all, and with a year of them that takes long. If the lake lacks some
    of it, a later call adds the rest. A repeated call adds nothing twice.

    A letter of reason ``schema`` whose schema the registry knew when the lake was filled, or back-filled, is an event for the
    lake. So it's among the late ones here, and among the dead ones of the stream.

    Parameters
    ----------
    spark
        A session with Spark's Kafka connector and Delta Lake.
    settings
        The stream's.
    lake
        Filled from the same topic, with windows of the same length.
    tables
        The stream's tables.

    Returns
    -------
    int
        How many late events the tables have by now.

    Raises
    ------
    LakeGone
        When a table of the lake is missing.
    ConnectionError
        When PostgreSQL doesn't answer in time. Nothing was changed.
    """
    if known := final(settings, tables):
        times = kept_since(settings), known.before
        changed = _changed(lake.read("gold"), _counted(spark, tables, *times), *times).toArrow()
        if changed.num_rows:
            windows = spark.createDataFrame(changed)
            alarms = _alarms(lake.read("silver"), windows, settings.window)
            tables.add_late(known.seen, changed, Drivers(settings).names(spark).beside(alarms.toArrow()))
    [(late,)] = tables.ask(_LATE)
    return int(late)


def _counted(spark: SparkSession, tables: Tables, since: datetime, end: datetime) -> DataFrame:
    """Return what the tables have of windows that start in a range of time."""
    rows = tables.ask(_COUNTED.format(since.isoformat(), end.isoformat()))
    columns = zip(*rows, strict=True) if rows else [()] * len(_COUNTED_COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _COUNTED_COLUMNS, strict=True)]
    return spark.createDataFrame(pa.table(arrays, schema=_COUNTED_COLUMNS))


def _changed(gold: DataFrame, counted: DataFrame, since: datetime, end: datetime) -> DataFrame:
    """Return gold's rows for which another number of events is late than the tables say."""
    first, last = (time.astimezone(UTC).date() for time in (since, end))
    compared = gold.where(f.col("day").between(first, last) & f.col("starts").between(since, end))
    both = compared.join(counted, ["starts", "driverId"], "left").fillna(0, ["counted", "late"])
    late = f.greatest(f.col("events") - f.col("counted"), f.lit(0))
    return both.where(late != f.col("late")).select("starts", "driverId", "events", "dangerous")


def _alarms(silver: DataFrame, windows: DataFrame, window: str) -> DataFrame:
    """Return the dangerous events of some windows and drivers."""
    counted = silver.withColumn("starts", transform.windows(window))
    return alarms_of(counted.join(f.broadcast(windows), ["starts", "driverId"], "left_semi"))
