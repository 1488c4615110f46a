"""How long the tables keep their rows, and up to when the stream adds nothing to them any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from truck_pipeline.durations import milliseconds
from truck_pipeline.settings import Settings
from truck_pipeline.tables import Tables

__all__ = ["Final", "final", "forget", "kept_since"]

_SEEN = "SELECT max(seen) FROM {schema}.batches"


class Final(NamedTuple):
    """Up to when the stream adds nothing to the tables any more.

    Attributes
    ----------
    seen
        The latest time of a batch, from which this follows.
    before
        Windows that start earlier are final.
    """

    seen: datetime
    before: datetime


def final(settings: Settings, tables: Tables) -> Final | None:
    """Return up to when windows are final: they end before the watermark. None if no stream has counted in the tables."""
    [(seen,)] = tables.ask(_SEEN)
    lengths = milliseconds(settings.patience) + milliseconds(settings.window)
    return None if seen is None else Final(seen, seen - timedelta(milliseconds=lengths))


def kept_since(settings: Settings) -> datetime:
    """Return the time before which the tables keep nothing: `Settings.keep` ago."""
    if settings.keep is None:
        return datetime.fromtimestamp(0, UTC)
    return datetime.now(UTC) - timedelta(milliseconds=milliseconds(settings.keep))


def forget(settings: Settings, tables: Tables) -> int:
    """Delete windows and alarms that are older than `Settings.keep`. The stream may run meanwhile.

    Windows that aren't final stay, however old they are, as when a stream works off a backlog. The lake isn't changed.

    Returns
    -------
    int
        How many rows were deleted. 0 if no stream has counted in the tables: `batch` computes them from the whole topic.

    Raises
    ------
    ConnectionError
        When PostgreSQL doesn't answer in time. Nothing was deleted.
    """
    known = final(settings, tables)
    return tables.forget(known.seen, min(known.before, kept_since(settings))) if known else 0
