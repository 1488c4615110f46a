"""Rows that several jobs need, computed once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark.sql import DataFrame

__all__ = ["cached"]


@contextlib.contextmanager
def cached(rows: DataFrame) -> Iterator[DataFrame]:
    """Cache rows within this context, so Spark computes them only once."""
    rows.persist()
    try:
        yield rows
    finally:
        rows.unpersist()
