"""Start streams, even on a busy Spark Connect server."""

from __future__ import annotations

import logging

from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from tenacity import retry, retry_if_exception_message, stop_after_delay

__all__ = ["begin"]

_LOG = logging.getLogger(__name__)
_PATIENCE = 60.0  # seconds
_TOO_SLOW = "Python worker failed to connect back"  # PythonWorkerFactory.scala of Spark 4.2


@retry(
    retry=retry_if_exception_message(match=f"(?s).*{_TOO_SLOW}"),
    stop=stop_after_delay(_PATIENCE),
    before_sleep=lambda _: _LOG.warning("Spark's server has waited 10 s for a Python process; trying again"),
    reraise=True,
)
def begin(writer: DataStreamWriter) -> StreamingQuery:
    """Start a stream that hands its batches to a Python function.

    Before the stream, a Spark Connect server starts a Python process for the function, and waits 10 s for it. No setting
    changes that. When the server gives up, no stream has started. So this function tries again, for a minute.

    Raises
    ------
    PySparkException
        If the stream doesn't start.
    """
    return writer.start()
