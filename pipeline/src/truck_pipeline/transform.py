"""Transformations of the event stream. Each takes a DataFrame and returns one, of a stream or of a batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from truck_pipeline.events import SCHEMA
from truck_pipeline.trucks import NORMAL

__all__ = [
    "SENT",
    "UNKNOWN",
    "dangerous",
    "dead_letters",
    "decoded",
    "deduplicate",
    "events",
    "latest_drivers",
    "per_window",
    "with_latency_metrics",
]

UNKNOWN = "a value was written by a schema that is new, number"
"""Error text, followed by the schema id, with which a query stops at an unknown schema."""

SENT = "sent"
"""Name of the metrics that `with_latency_metrics` adds."""

_RECORD = ("key", "value", "topic", "partition", "offset")
_FIELDS = ("truckId", "driverId", "routeId", "eventType", "latitude", "longitude")

_HEADER = 5  # bytes: a zero, and the schema's id
_HIGHEST = 1 << 24  # registries count their schemas; no schema has a higher id

# Upper bound in bytes: larger events fit neither the topics nor the tables. As JSON a byte may become six.
_LARGEST = 100_000
_LONGEST_ID = 200  # characters
_EARLY = 86_400_000  # milliseconds: a clock that goes wrong by more would move the watermark past all other events

# Bytes that fit into a record, by the default limits of brokers and producers.
_DEAD = {"key": 100_000, "value": 900_000}

_DRIVER = "id INT, first_name STRING, last_name STRING, available BOOLEAN"


def decoded(records: DataFrame, schemas: Mapping[int, str], foreign: Collection[int] | None = None) -> DataFrame:
    """Decode records into events. A malformed record becomes a row with the `problem` and the record's own columns instead.

    An event has the `time` when it happened, and the time when its record was `sent`. A malformed record has its partition and
    offset for an id, and no time. So it's never late, and never a repeat.

    Parameters
    ----------
    records
        Rows of Spark's Kafka source.
    schemas
        Writer schemas by registry id. Values are decoded into this version's reader schema.
    foreign
        Schema ids known not to belong to the topic. Any other unknown id stops the query with `UNKNOWN`. Without this
        argument, all unknown ids count as foreign.
    """
    header = f.substring("value", 1, _HEADER)
    headers = {number: f.lit(b"\0" + number.to_bytes(4, "big")) for number in schemas}
    event: Column = from_avro(f.lit(None).cast("binary"), SCHEMA)
    for number, schema in schemas.items():
        avro = f.expr(f"substring(value, {_HEADER + 1})")
        read = from_avro(avro, schema, {"mode": "PERMISSIVE", "avroSchema": SCHEMA})
        event = f.when(header == headers[number], read).otherwise(event)
    unknown = f.lit("a schema that the registry doesn't know for this topic")
    if foreign is not None:
        written_by = f.conv(f.hex(f.substring("value", 2, 4)), 16, 10).cast("long")
        new = (written_by < _HIGHEST) & ~written_by.isin(*foreign)
        unknown = f.when(new, f.raise_error(f.concat_ws(" ", f.lit(UNKNOWN), written_by))).otherwise(unknown)
    misfit = f.when(f.col("event.correlationId").isNull(), "the value doesn't fit its schema").when(
        _impossible(), "a time, an id or a text that no event can have"
    )
    problem = (
        f.when(f.length("value") > _LARGEST, f.concat(f.length("value"), f.lit(f" bytes, and an event has {_LARGEST} at most")))
        .when(header.isin(*headers.values()), misfit)
        .when((f.length("value") > _HEADER) & (f.substring("value", 1, 1) == f.lit(b"\0")), unknown)
        .otherwise("no header of a schema")
    )
    place = f.concat_ws("/", "topic", "partition", "offset")
    good = f.col("problem").isNull()
    return records.withColumn("event", event).withColumn("problem", problem).select(
        "problem",
        *[f.when(~good, f.col(name)).alias(name) for name in _RECORD],
        *[f.when(good, f.col(f"event.{name}")).alias(name) for name in _FIELDS],
        f.when(good, f.col("event.correlationId")).otherwise(place).alias("correlationId"),
        f.when(good, f.col("timestamp")).alias("sent"),
        f.when(good, f.timestamp_millis("event.timestamp")).alias("time"),
    )  # fmt: skip


def _impossible() -> Column:
    """Return the condition for an event with an impossible time, id or text.

    Without it, times that Spark can't count and texts that PostgreSQL can't store would stop the query.
    """
    time = f.col("event.timestamp").between(0, f.unix_millis("timestamp") + _EARLY)
    name = f.length("event.correlationId").between(1, _LONGEST_ID)
    return ~time | ~name | f.concat("event.correlationId", "event.eventType").contains("\0")


def events(decoded: DataFrame) -> DataFrame:
    """Keep only the events."""
    return decoded.where("problem IS NULL").select(*_FIELDS, "correlationId", "sent", "time")


def with_latency_metrics(rows: DataFrame) -> DataFrame:
    """Add metrics of each micro-batch: its number of events, and the median and first percentile of when they were sent."""
    when = f.percentile_approx(f.unix_millis("sent"), [0.5, 0.01])
    return rows.observe(SENT, when.alias("when"), f.count("sent").alias("events"))


def dead_letters(decoded: DataFrame) -> DataFrame:
    """Turn malformed records into dead letters. Their headers name the problem, and the record's topic, partition and offset.

    Keys and values are cut to the sizes in `_DEAD`. The record's own headers and timestamp aren't copied.
    """
    header = f.array(*[
        f.struct(f.lit(name).alias("key"), f.col(name).cast("string").cast("binary").alias("value"))
        for name in ("problem", "topic", "partition", "offset")
    ])  # fmt: skip
    cut = [f.substring(column, 1, size).alias(column) for column, size in _DEAD.items()]
    return decoded.where("problem IS NOT NULL").select(*cut, header.alias("headers"))


def deduplicate(rows: DataFrame, patience: str) -> DataFrame:
    """Keep one row of each event, however often it was sent.

    A stream drops events that are later than the watermark. It remembers an id as long as a repeat could come in time.
    """
    if not rows.isStreaming:
        return rows.dropDuplicates(["correlationId"])
    return rows.withWatermark("time", patience).dropDuplicatesWithinWatermark(["correlationId"])


def latest_drivers(records: DataFrame) -> DataFrame:
    """Return the table of drivers: the last row of each key. A driver whose last record is a tombstone isn't in it."""
    last = records.groupBy("key").agg(f.max_by("value", "offset").alias("value"))
    row = f.from_json(f.col("value").cast("string"), _DRIVER)
    return last.where("value IS NOT NULL").select(row.alias("driver")).select("driver.*")


def dangerous(events: DataFrame, drivers: DataFrame) -> DataFrame:
    """Keep events of any kind but ``Normal``, and add their drivers' names. The names of an unknown driver are null."""
    named = drivers.select(f.col("id").alias("driverId"), "first_name", "last_name")
    return events.where(f.col("eventType") != NORMAL).join(f.broadcast(named), "driverId", "left")


def per_window(events: DataFrame, window: str) -> DataFrame:
    """Count the events of each driver in each window, and the dangerous ones among them."""
    counts = events.groupBy(f.window("time", window), "driverId").agg(
        f.count("*").alias("events"),
        f.count_if(f.col("eventType") != NORMAL).alias("dangerous"),
    )
    return counts.select(f.col("window.start").alias("starts"), "driverId", "events", "dangerous")
