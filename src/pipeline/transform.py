"""What becomes of records: functions from a DataFrame to a DataFrame. Streams and batches share them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from pipeline.events import SCHEMA
from pipeline.trucks import NORMAL

__all__ = ["SENT", "UNKNOWN", "dangerous", "dead_letters", "decoded", "events", "latest_drivers", "noted", "once", "per_window"]

UNKNOWN = "a value was written by a schema that is new, number"
"""With this and the schema's id a query ends that meets one."""

SENT = "sent"
"""The metric of `noted`."""

_HEADER = 5  # bytes: a zero, and the schema's id
_HIGHEST = 1 << 24  # registries count their schemas; a higher number is no schema's

# What is larger than that fits no topic and no table that the pipeline writes. As JSON a byte may become six.
_LARGEST = 100_000
_LONGEST_ID = 200  # characters
_EARLY = 86_400_000  # milliseconds: a clock that goes wrong by more would move the watermark past all other events

# What fits into a record, by the limits that brokers and producers have by default.
_DEAD = {"key": 100_000, "value": 900_000}

_DRIVER = "id INT, first_name STRING, last_name STRING, available BOOLEAN"


def decoded(records: DataFrame, schemas: Mapping[int, str], foreign: Collection[int] | None = None) -> DataFrame:
    """Kafka's records with the `event` that each holds, or with the `problem`, which is null where there is none.

    Parameters
    ----------
    records
        As Spark's Kafka source gives them.
    schemas
        By which schemas values may be written, by the registry's ids. They are read by this version's own.
    foreign
        Which ids aren't among those of the topic, as is known. A query that meets any other ends: see `UNKNOWN`. Without
        these, all others are foreign.
    """
    written_by = f.conv(f.hex(f.substring("value", 2, 4)), 16, 10).cast("long")
    event: Column = from_avro(f.lit(None).cast("binary"), SCHEMA)
    for number, schema in schemas.items():
        avro = f.expr(f"substring(value, {_HEADER + 1})")
        read = from_avro(avro, schema, {"mode": "PERMISSIVE", "avroSchema": SCHEMA})
        event = f.when(written_by == number, read).otherwise(event)
    framed = (f.length("value") > _HEADER) & (f.hex(f.substring("value", 1, 1)) == "00")
    unknown = f.lit("a schema that the registry doesn't know for this topic")
    if foreign is not None:
        new = (written_by < _HIGHEST) & ~written_by.isin(*foreign)
        unknown = f.when(new, f.raise_error(f.concat_ws(" ", f.lit(UNKNOWN), written_by))).otherwise(unknown)
    problem = (
        f.when(f.length("value") > _LARGEST, f.concat(f.length("value"), f.lit(f" bytes, and an event has {_LARGEST} at most")))
        .when(f.coalesce(~framed, f.lit(True)), "no header of a schema")
        .when(~written_by.isin(*schemas), unknown)
        .when(f.col("event.correlationId").isNull(), "the value doesn't fit its schema")
        .when(_impossible(), "a time, an id or a text that no event can have")
    )
    return records.withColumn("event", f.when(framed, event)).withColumn("problem", problem)


def _impossible() -> Column:
    """What would end each query that meets it: times that Spark can't count, and texts that PostgreSQL can't store."""
    time = f.col("event.timestamp").between(0, f.unix_millis("timestamp") + _EARLY)
    name = f.length("event.correlationId").between(1, _LONGEST_ID)
    return ~time | ~name | f.concat("event.correlationId", "event.eventType").contains("\0")


def events(decoded: DataFrame) -> DataFrame:
    """The events, with the `time` when each happened and the time `sent` of its record."""
    good = decoded.where("problem IS NULL").select("event.*", f.col("timestamp").alias("sent"))
    return good.withColumn("time", f.timestamp_millis("timestamp")).drop("timestamp")


def noted(events: DataFrame) -> DataFrame:
    """The events. With each micro-batch the stream tells when half of them had been sent, and when the first hundredth."""
    when = f.percentile_approx(f.unix_millis("sent"), [0.5, 0.01])
    return events.observe(SENT, when.alias("when"), f.count("*").alias("events"))


def dead_letters(decoded: DataFrame) -> DataFrame:
    """The other records for a topic of their own, with headers that say what is wrong and where they were.

    They are unchanged, but for those that are too large for it: of them it gets the beginning.
    """
    header = f.array(*[
        f.struct(f.lit(name).alias("key"), f.col(column).cast("string").cast("binary").alias("value"))
        for name, column in {"problem": "problem", "topic": "topic", "partition": "partition", "offset": "offset"}.items()
    ])  # fmt: skip
    beginnings = [f.substring(column, 1, most).alias(column) for column, most in _DEAD.items()]
    return decoded.where("problem IS NOT NULL").select(*beginnings, header.alias("headers"))


def once(events: DataFrame, patience: str) -> DataFrame:
    """Each event once, however often it was sent.

    A stream remembers the ids of events until the watermark has passed them. An event that is later than that is dropped.
    """
    return events.withWatermark("time", patience).dropDuplicates(["correlationId", "time"])


def latest_drivers(records: DataFrame) -> DataFrame:
    """The table of drivers: the last row of each key. One whose last record is a tombstone isn't in it."""
    last = records.groupBy("key").agg(f.max_by("value", "offset").alias("value"))
    row = f.from_json(f.col("value").cast("string"), _DRIVER)
    return last.where("value IS NOT NULL").select(row.alias("driver")).select("driver.*")


def dangerous(events: DataFrame, drivers: DataFrame) -> DataFrame:
    """Events of any kind but ``Normal``, with the names of their drivers; without names where the driver is unknown."""
    named = drivers.select(f.col("id").alias("driverId"), "first_name", "last_name")
    return events.where(f.col("eventType") != NORMAL).join(f.broadcast(named), "driverId", "left")


def per_window(events: DataFrame, window: str) -> DataFrame:
    """How many events, and how many dangerous ones, each driver had in each window."""
    counts = events.groupBy(f.window("time", window), "driverId").agg(
        f.count("*").alias("events"),
        f.count_if(f.col("eventType") != NORMAL).alias("dangerous"),
    )
    return counts.select(f.col("window.start").alias("starts"), "driverId", "events", "dangerous")
