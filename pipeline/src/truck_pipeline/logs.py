"""Logs as lines of JSON on standard error, in the form of Spark's own. ``pyspark.logger.SPARK_LOG_SCHEMA`` describes it."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from pyspark.logger.logger import JSONFormatter

__all__ = ["log", "logged_as_json"]

_LOG = logging.getLogger(__package__)


def log(message: str, **context: object) -> None:
    """Log what happened, and values that belong to it."""
    _LOG.info(message, extra={"context": context})


@contextlib.contextmanager
def logged_as_json(secrets: Collection[str] = ()) -> Iterator[None]:
    """Write logs as JSON within this context: the pipeline's from INFO, all others from WARNING.

    Parameters
    ----------
    secrets
        Texts that no line shows, wherever they come from. Lines have ``…`` instead.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(secrets))
    root = logging.getLogger()
    root.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        _LOG.setLevel(logging.NOTSET)
        root.removeHandler(handler)


class _Formatter(JSONFormatter):
    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__()
        # A secret that is part of another one comes later, or the rest of the other one would stay.
        self._secrets = sorted((json.dumps(secret, ensure_ascii=False)[1:-1] for secret in secrets), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        for secret in self._secrets:
            line = line.replace(secret, "…")
        return line

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
