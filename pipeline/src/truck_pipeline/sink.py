"""What the stream does with a batch: it stores answers in the tables, and writes alarms and dead letters to their topics."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
from pyarrow import compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from truck_pipeline import transform
from truck_pipeline.gate import Gate
from truck_pipeline.letters import letter
from truck_pipeline.names import Drivers
from truck_pipeline.outlet import Outlet, Record
from truck_pipeline.settings import Settings
from truck_pipeline.tables import Batch, Tables
from truck_pipeline.trucks import NORMAL
from truck_pipeline.writers import Writers

__all__ = ["Sink", "alarms_of", "needed"]


class Sink:
    """Takes the stream's batches. A repeated batch writes its records to the topics again, and leaves the tables as they are.

    Each batch costs one job of Spark's, which brings to this process what the batch answers, and no event itself.

    Parameters
    ----------
    settings
        Topics, servers and limits.
    tables, outlet
        Where answers and records go.
    schemas
        Ids of the schemas that the stream decodes.
    gate
        Lets batches in until the stream is to end.

    Raises
    ------
    ConnectionError
        By a batch, when Kafka, PostgreSQL or the registry is away for too long. Nothing is half stored.
    GateClosed
        By a batch that comes when the stream is to end.
    NewSchema
        By a batch with values of a schema that the registry knows and the stream doesn't.
    """

    def __init__(self, settings: Settings, tables: Tables, outlet: Outlet, schemas: Collection[int], gate: Gate) -> None:
        self._settings, self._tables, self._outlet, self._schemas = settings, tables, outlet, frozenset(schemas)
        self._gate = gate
        self._writers, self._drivers = Writers(settings), Drivers(settings)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Take a batch."""
        with self._gate:
            self._take(rows, batch)

    def _take(self, rows: DataFrame, batch: int) -> None:
        text = f.to_json(f.col("alarm")[0]).alias("text")
        found = rows.select("starts", "driverId", "sent", "clock", "dead", "alarm", text).toArrow()
        if not found.num_rows:  # Spark only removes old state
            return
        dead, events = _fields(found["dead"]), found.filter(pc.is_null(found["dead"]))
        if dead.num_rows:
            self._writers.require_known(_unknown_ids(dead), self._schemas)
            self._outlet.send(self._settings.dead_letters, map(letter, dead.to_pylist()))
        if (alarms := _fields(events["alarm"])).num_rows:
            names = self._drivers.names(rows.sparkSession)
            texts = names.in_json(alarms["driverId"], pc.drop_null(events["text"]))
            self._outlet.send(self._settings.dangerous, map(Record, alarms["correlationId"].to_pylist(), texts.to_pylist()))
            alarms = names.beside(alarms)
        # Kafka takes the records meanwhile. If either fails, Spark repeats the batch, and both take it again.
        self._tables.put(_facts(batch, events, dead.num_rows), _per_window(events), alarms)
        self._outlet.settle()


def needed(rows: DataFrame, window: str) -> DataFrame:
    """Keep of decoded rows what a `Sink` needs. Spark writes each row to a shuffle, so most of it is for alarms only.

    `alarm` and `dead` are lists with one element or null: where a struct is null, Arrow writes a null for each of its fields.
    """
    alarm = f.when(f.col("eventType") != NORMAL, f.array(_alarm())).alias("alarm")
    dead = f.when(f.col("dead").isNotNull(), f.array("dead")).alias("dead")
    return rows.select("correlationId", transform.windows(window).alias("starts"), "driverId", "sent", "clock", dead, alarm)


def alarms_of(events: DataFrame) -> DataFrame:
    """Return the dangerous events, with what an alarm has of them."""
    return events.where(f.col("eventType") != NORMAL).select(_alarm().alias("alarm")).select("alarm.*")


def _alarm() -> Column:
    times = [f.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSSX").alias(name) for name in ("time", "sent")]
    return f.struct("correlationId", times[0], "eventType", "truckId", "driverId", "latitude", "longitude", times[1])


def _facts(number: int, events: pa.Table, dead: int) -> Batch:
    sent = pc.array_sort_indices(events["sent"])
    first, half = (events["sent"][sent[len(sent) * part // 100].as_py()].as_py() if len(sent) else None for part in (1, 50))
    return Batch(number, events.num_rows, dead, pc.max(events["clock"]).as_py(), half, first)


def _per_window(events: pa.Table) -> pa.Table:
    """Count events of each driver in each window, and the alarms among them, as `transform.per_window` does in Spark."""
    dangerous = pc.is_valid(events["alarm"]).cast(pa.int64())
    rows = pa.table({"starts": events["starts"], "driverId": events["driverId"], "dangerous": dangerous})
    counts = rows.group_by(["starts", "driverId"]).aggregate([([], "count_all"), ("dangerous", "sum")])
    return pa.table({
        "starts": counts["starts"],
        "driverId": counts["driverId"],
        "events": counts["count_all"],
        "dangerous": counts["dangerous_sum"],
    })  # fmt: skip


def _fields(column: pa.ChunkedArray) -> pa.Table:
    """Return the fields of the structs in a column of lists as a table."""
    return pa.Table.from_struct_array(pc.list_flatten(column).combine_chunks())


def _unknown_ids(dead: pa.Table) -> set[int]:
    """Return the ids of schemas that the stream doesn't know, in values that have one."""
    values = dead.filter(pc.equal(dead["reason"], transform.UNKNOWN_SCHEMA))["value"]
    return {int.from_bytes(value[1:5], "big") for value in pc.binary_slice(values, 0, 5).to_pylist()}
