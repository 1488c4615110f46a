"""Transformations of the event stream. Each takes a DataFrame and returns one, of a stream or of a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from truck_pipeline.durations import milliseconds
from truck_pipeline.events import SCHEMA
from truck_pipeline.trucks import NORMAL

__all__ = [
    "CLOCK",
    "REASONS",
    "UNKNOWN_SCHEMA",
    "dangerous",
    "decoded",
    "deduplicate",
    "events",
    "latest_drivers",
    "per_window",
    "windows",
    "with_clock",
    "with_names",
]

UNKNOWN_SCHEMA, CLOCK = "schema", "clock"

REASONS: Mapping[str, str] = {
    "header": "no header of a schema",
    UNKNOWN_SCHEMA: "a schema that the registry doesn't know for this topic",
    "value": "the value doesn't fit its schema",
    "content": "a time, an id or a text that no event can have",
    CLOCK: "a time in the future: the truck's clock is fast",
    "size": "more bytes than an event can have",
}
"""Why a record is a dead letter, by the word in the letter's header ``dead.reason``."""

_RECORD = ("key", "value", "topic", "partition", "offset", "timestamp")

_HEADER = 5  # bytes: a zero, and the schema's id

# Upper bound in bytes: larger events fit neither the topics nor the tables. As JSON a byte may become six.
_LARGEST = 100_000
_LONGEST_ID = 200  # characters

_DRIVER = "id INT, first_name STRING, last_name STRING, available BOOLEAN"


def decoded(records: DataFrame, schemas: Mapping[int, str], ahead: str = "2 minutes", reader: str = SCHEMA) -> DataFrame:
    """Decode records into events. A record that can't be one gets the column `dead` instead: why, and what it was.

    An event has the `time` when it happened, and the time when its record was `sent`. A dead record has its partition and
    offset for an id, and no time. So it's never late, and never a repeat.

    Parameters
    ----------
    records
        Rows of Spark's Kafka source. Their headers are kept if they have any (the source's option ``includeHeaders``).
    schemas
        Writer schemas by registry id. Values are decoded into the reader schema.
    ahead
        By how much a truck's clock may be ahead of the record's timestamp.
    reader
        The reader schema. Each of its fields becomes a column, except that `timestamp` becomes `time`.
    """
    header = f.substring("value", 1, _HEADER)
    headers = {number: f.lit(b"\0" + number.to_bytes(4, "big")) for number in schemas}
    event: Column = from_avro(f.lit(None).cast("binary"), reader)
    for number, schema in schemas.items():
        avro = f.expr(f"substring(value, {_HEADER + 1})")
        read = from_avro(avro, schema, {"mode": "PERMISSIVE", "avroSchema": reader})
        event = f.when(header == headers[number], read).otherwise(event)
    late_by = f.unix_millis("timestamp") + milliseconds(ahead)
    unfit = (
        f.when(f.col("event.correlationId").isNull(), "value")
        .when(_impossible(), "content")
        .when(f.col("event.timestamp") > late_by, CLOCK)
    )
    reason = (
        f.when(f.length("value") > _LARGEST, "size")
        .when(header.isin(*headers.values()), unfit)
        .when((f.length("value") > _HEADER) & (f.substring("value", 1, 1) == f.lit(b"\0")), UNKNOWN_SCHEMA)
        .otherwise("header")
    )
    good = f.col("reason").isNull()
    own = f.col("headers") if "headers" in records.columns else f.lit(None).cast(_HEADERS)
    dead = f.struct(f.col("reason"), *[f.col(name) for name in _RECORD], own.alias("headers"))
    fields = [field["name"] for field in json.loads(reader)["fields"] if field["name"] not in ("timestamp", "correlationId")]
    return records.withColumn("event", event).withColumn("reason", reason).select(
        f.when(~good, dead).alias("dead"),
        *[f.when(good, f.col(f"event.{name}")).alias(name) for name in fields],
        f.when(good, f.col("event.correlationId")).otherwise(f.concat_ws("/", *_RECORD[2:5])).alias("correlationId"),
        f.when(good, f.col("timestamp")).alias("sent"),
        f.when(good, f.timestamp_millis("event.timestamp")).alias("time"),
    )  # fmt: skip


_HEADERS = "array<struct<key: string, value: binary>>"


def _impossible() -> Column:
    """Return the condition for an event with an impossible time, id or text.

    Without it, times that Spark can't count and texts that PostgreSQL can't store would stop the query.
    """
    time = f.col("event.timestamp").between(0, _LAST)
    name = f.length("event.correlationId").between(1, _LONGEST_ID)
    return ~time | ~name | f.concat("event.correlationId", "event.eventType").contains("\0")


_LAST = 4_102_444_800_000  # milliseconds: the year 2100; Spark can't count much larger ones


def events(decoded: DataFrame) -> DataFrame:
    """Keep only the events."""
    return decoded.where("dead IS NULL").drop("dead")


def with_clock(rows: DataFrame) -> DataFrame:
    """Add the column `clock`, for a watermark: the events' times, but never ahead of the clocks of Kafka and Spark.

    So a truck whose clock is fast makes nobody else's events late.
    """
    # Spark writes this time as a number into the code that it generates, and so would compile anew for each batch of a stream.
    # It doesn't generate code for what a lambda function does.
    now = f.transform(f.array(f.lit(0)), lambda _: f.current_timestamp())[0]
    clock = f.least("time", "sent", now)
    return rows.withColumn("clock", f.when(f.col("time").isNotNull(), clock))


def deduplicate(rows: DataFrame, patience: str, clock: str = "time") -> DataFrame:
    """Keep one row of each event, however often it was sent.

    A stream drops events that are later than the watermark, which follows the column named by `clock`. It remembers an id as
    long as a repeat could come in time.
    """
    if not rows.isStreaming:
        return rows.dropDuplicates(["correlationId"])
    return rows.withWatermark(clock, patience).dropDuplicatesWithinWatermark(["correlationId"])


def latest_drivers(records: DataFrame) -> DataFrame:
    """Return the table of drivers: the last row of each key. A driver whose last record is a tombstone isn't in it."""
    last = records.groupBy("key").agg(f.max_by("value", "offset").alias("value"))
    row = f.from_json(f.col("value").cast("string"), _DRIVER)
    return last.where("value IS NOT NULL").select(row.alias("driver")).select("driver.*")


def dangerous(events: DataFrame, drivers: DataFrame) -> DataFrame:
    """Keep events of any kind but ``Normal``, and add their drivers' names. The names of an unknown driver are null."""
    return with_names(events.where(f.col("eventType") != NORMAL), drivers)


def with_names(rows: DataFrame, drivers: DataFrame) -> DataFrame:
    """Add the names of drivers, by the column `driverId`. The names of an unknown driver are null."""
    named = drivers.select(f.col("id").alias("driverId"), "first_name", "last_name")
    return rows.join(f.broadcast(named), "driverId", "left")


def windows(window: str) -> Column:
    """Return the start of the window in which an event happened. Windows follow one another from 1970 on."""
    happened, length = f.unix_millis("time"), milliseconds(window)
    return f.timestamp_millis(happened - f.pmod(happened, f.lit(length)))


def per_window(events: DataFrame, window: str) -> DataFrame:
    """Count the events of each driver in each window, and the dangerous ones among them."""
    return events.groupBy(windows(window).alias("starts"), "driverId").agg(
        f.count("*").alias("events"),
        f.count_if(f.col("eventType") != NORMAL).alias("dangerous"),
    )
