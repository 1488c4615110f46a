"""What the lake makes of the records in bronze: events in silver, counts of them in gold, and all else in quarantine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from truck_pipeline import transform
from truck_pipeline.caching import cached
from truck_pipeline.durations import milliseconds
from truck_pipeline.lake_tables import Table, day, during

__all__ = ["Layers"]

_EVENT = ("truckId", "driverId", "routeId", "eventType", "latitude", "longitude", "correlationId", "sent", "time")


@dataclass(frozen=True)
class Layers:
    """The tables that are made from bronze. It holds no session, so Spark Connect can send it to its server.

    Attributes
    ----------
    folder
        The folder of all the tables.
    window
        The length of gold's windows.
    """

    folder: str
    window: str

    def add(self, decoded: DataFrame, batch: int = 0) -> None:
        """Add decoded records: events to silver and gold, all others to quarantine.

        To add them again changes nothing, or completes what a crash interrupted. So it takes a stream's batches.
        """
        with cached(decoded):
            dead, happened = self._days(decoded)
            if dead:
                self._quarantine.insert(_dead(decoded), dead)
            if happened:
                events = _first(transform.events(decoded))
                self._silver.insert(events, happened)
                self._count(events, happened)

    def replace(self, decoded: DataFrame, others: DataFrame, begin: datetime, end: datetime) -> None:
        """Put decoded records in the place of what the records of a range of time were before.

        To replace them again changes nothing, or completes what a crash interrupted.

        Parameters
        ----------
        decoded
            All of bronze's records with timestamps in the range, decoded.
        others
            All the others, decoded. They are only read if events vanish from the range: perhaps they were sent again later.
        begin, end
            The range. The end isn't in it.
        """
        spark = decoded.sparkSession
        with cached(decoded):
            events = _first(transform.events(decoded))
            before = self._silver.rows(spark).where(during("sent", begin, end))
            vanished = before.join(events, "correlationId", "left_anti").select("correlationId")
            if not vanished.isEmpty():
                again = transform.events(others).join(vanished, "correlationId", "left_semi")
                events = events.unionByName(_first(again))
            self._silver.replace(events, during("old.sent", begin, end))
            first, last = (time.astimezone(UTC).date() for time in (begin, end))
            replaced = f.col("day").between(first, last) & f.expr(during("timestamp", begin, end))
            _dead(decoded).writeTo(self._quarantine.name).overwrite(replaced)
        # All windows are counted: nothing tells which ones an interrupted call had changed.
        self._gold.replace(self._counts(self._silver.rows(spark)))

    def _days(self, decoded: DataFrame) -> tuple[set[date], set[date]]:
        """Return the days of dead records, and those of windows in which events happened, in one job.

        There are some ten thousand days at most, because no event has a time after the year 2100.
        """
        starts = transform.windows(self.window)
        last = f.timestamp_millis(f.unix_millis(starts) + milliseconds(self.window) - 1)
        window = f.when(f.col("time").isNotNull(), f.sequence(day(starts), day(last)))
        [(dead, windows)] = decoded.agg(f.collect_set(day("dead.timestamp")), f.collect_set(window)).collect()
        return set(dead), set().union(*windows)

    def _count(self, events: DataFrame, days: Collection[date]) -> None:
        """Count silver's events again in the windows in which these happened. The windows are in some days."""
        windows = events.select(transform.windows(self.window).alias("starts")).distinct()
        silver = self._silver.rows(events.sparkSession).where(f.col("day").isin(*days))
        there = silver.withColumn("starts", transform.windows(self.window))
        self._gold.update(self._counts(there.join(f.broadcast(windows), "starts", "left_semi")), days)

    def _counts(self, silver: DataFrame) -> DataFrame:
        return transform.per_window(silver, self.window).withColumn("day", day("starts"))

    @property
    def _silver(self) -> Table:
        return Table(self.folder, "silver", ("correlationId",))

    @property
    def _quarantine(self) -> Table:
        return Table(self.folder, "quarantine", ("topic", "partition", "offset"))

    @property
    def _gold(self) -> Table:
        return Table(self.folder, "gold", ("starts", "driverId"))


def _first(events: DataFrame) -> DataFrame:
    """Return rows of silver: of each event the record that was sent first."""
    first = f.min_by(f.struct(*_EVENT), "sent").alias("event")
    return events.groupBy("correlationId").agg(first).select("event.*", day("event.time"))


def _dead(decoded: DataFrame) -> DataFrame:
    """Return rows of quarantine."""
    return decoded.where("dead IS NOT NULL").select("dead.*", day("dead.timestamp"))
