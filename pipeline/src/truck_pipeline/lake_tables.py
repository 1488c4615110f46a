"""The lake's tables: their columns and names, and how rows get into them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

__all__ = ["TABLES", "Table", "day", "during"]

_RECORD = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)

TABLES: Mapping[str, str] = {
    # each record as it came from Kafka: the other tables can be computed again from it
    "bronze": f"{_RECORD}, day DATE",
    # each event once, with columns of its own
    "silver": (
        "truckId INT, driverId INT, routeId BIGINT, eventType STRING, latitude DOUBLE, longitude DOUBLE, correlationId STRING, "
        "sent TIMESTAMP, time TIMESTAMP, day DATE"
    ),
    # each record that isn't an event, with the reason
    "quarantine": f"reason STRING, {_RECORD}, day DATE",
    # answers
    "gold": "starts TIMESTAMP, driverId INT, events BIGINT, dangerous BIGINT, day DATE",
}
"""Columns of each table, by its name. A table is partitioned by the day of its records, events or windows."""

# Delta only reads partitions that a condition names.
_INSERT = """
MERGE INTO {table} AS old USING {{new}} AS new ON {same} AND old.day IN ({days})
WHEN NOT MATCHED THEN INSERT *
"""

_UPDATE = """
MERGE INTO {table} AS old USING {{new}} AS new ON {same} AND old.day IN ({days})
WHEN MATCHED AND {differs} THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
"""

_REPLACE = """
MERGE INTO {table} AS old USING {{new}} AS new ON {same}
WHEN MATCHED AND {differs} AND {replaced} THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
WHEN NOT MATCHED BY SOURCE AND {replaced} THEN DELETE
"""


@dataclass(frozen=True)
class Table:
    """A Delta table in the lake's folder. It holds no session, so Spark Connect can send it to its server.

    Attributes
    ----------
    folder
        The folder of all the tables.
    kind
        Which one it is, of `TABLES`.
    keys
        Columns that tell its rows apart.
    """

    folder: str
    kind: str
    keys: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Its own folder."""
        return f"{self.folder}/{self.kind}"

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return f"delta.`{self.path}`"

    def create(self, spark: SparkSession) -> None:
        """Create it if it doesn't exist yet."""
        spark.sql(f"CREATE TABLE IF NOT EXISTS {self.name} ({TABLES[self.kind]}) USING delta PARTITIONED BY (day)")

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return its rows as they are now."""
        return spark.read.format("delta").load(self.path)

    def insert(self, rows: DataFrame, days: Collection[date]) -> None:
        """Insert rows of some days. Rows that are there already stay as they are."""
        self._merge(_INSERT, rows, days=_literals(days))

    def update(self, rows: DataFrame, days: Collection[date]) -> None:
        """Insert rows of some days, or put them in the place of those with the same keys."""
        self._merge(_UPDATE, rows, days=_literals(days))

    def replace(self, rows: DataFrame, replaced: str = "true") -> None:
        """Put rows in the place of those for which a condition in SQL holds, in one transaction. Leave equal rows as they are.

        A row that is there already, and for which the condition doesn't hold, stays as it is. In the condition, ``old`` stands
        for this table.
        """
        self._merge(_REPLACE, rows, replaced=f"({replaced})")

    def _merge(self, statement: str, rows: DataFrame, **parts: str) -> None:
        same = " AND ".join(f"old.{key} = new.{key}" for key in ("day", *self.keys))
        old, new = (", ".join(f"{side}.{column}" for column in rows.columns) for side in ("old", "new"))
        differs = f"struct({old}) != struct({new})"
        merge = statement.format(table=self.name, same=same, differs=differs, **parts)
        rows.sparkSession.sql(merge, new=rows)


def day(time: Column | str) -> Column:
    """Return the day of the times in a column: in UTC, whatever the session's time zone is."""
    return f.date_from_unix_date(f.floor(f.unix_millis(time) / 86_400_000).cast("int")).alias("day")


def during(column: str, begin: datetime, end: datetime) -> str:
    """Return the condition for a time in a range, in SQL. The end isn't in the range."""
    first, after = (f"timestamp_millis({round(time.timestamp() * 1000)})" for time in (begin, end))
    return f"{column} >= {first} AND {column} < {after}"


def _literals(days: Collection[date]) -> str:
    return ", ".join(f"DATE'{day}'" for day in days)
