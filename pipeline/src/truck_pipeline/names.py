"""The names of drivers, which alarms have and events don't."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from truck_pipeline import transform
from truck_pipeline.settings import Settings

__all__ = ["Drivers", "Names"]


@dataclass(frozen=True)
class Names:
    """The names of all known drivers.

    Attributes
    ----------
    rows
        `id`, `first_name`, `last_name`, and `text`: both names in JSON, or null if neither is known.
    """

    rows: pa.Table

    def beside(self, alarms: pa.Table) -> pa.Table:
        """Add two columns to alarms, which then are those of the table, in its order. An unknown driver has no name."""
        place = alarms.column_names.index("driverId") + 1
        for column in ("last_name", "first_name"):
            alarms = alarms.add_column(place, column, self._of(alarms["driverId"], column))
        return alarms

    def in_json(self, drivers: pa.ChunkedArray, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Add names to alarms in JSON, each an object with something in it. An unknown driver's stay as they are."""
        names = pc.utf8_slice_codeunits(self._of(drivers, "text"), 1)
        return pc.coalesce(pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, -1), names, ","), texts)

    def _of(self, drivers: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        return self.rows[column].take(pc.index_in(drivers, value_set=self.rows["id"]))


class Drivers:
    """The topic of drivers, which is read again whenever the names are older than `Settings.refresh` seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names: Names | None = None
        self._read = 0.0

    def names(self, spark: SparkSession) -> Names:
        """Return the names of all drivers."""
        if self._names is None or time.monotonic() - self._read >= self._settings.refresh:
            records = spark.read.format("kafka").options(**self._settings.source(self._settings.drivers)).load()
            text = f.nullif(f.to_json(f.struct("first_name", "last_name")), f.lit("{}")).alias("text")
            rows = transform.latest_drivers(records).select("id", "first_name", "last_name", text)
            self._names, self._read = Names(rows.toArrow()), time.monotonic()
        return self._names
