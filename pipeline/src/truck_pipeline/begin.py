"""Start streams, even on a busy Spark Connect server."""

from __future__ import annotations

import logging

from pyspark.errors import PySparkException
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

__all__ = ["begin"]

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 3
_TOO_SLOW = "Python worker failed to connect back"  # PythonWorkerFactory.scala of Spark 4.0


def begin(writer: DataStreamWriter) -> StreamingQuery:
    """Start a stream that hands its batches to a Python function.

    Before the stream, a Spark Connect server starts a Python process for the function, and waits 10 s for it. No setting
    changes that. When the server gives up, no stream has started. So this function tries three times, as Spark does for its
    tasks.

    Raises
    ------
    PySparkException
        If the stream doesn't start.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if _TOO_SLOW not in str(error):
                raise
            _LOG.warning("Spark's server has waited 10 s for a Python process; trying again")
    return writer.start()
