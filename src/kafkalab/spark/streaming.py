"""Follow a streaming query, batch by batch."""

from __future__ import annotations

import html
import json
import math
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kafkalab.errors import KafkaLabError
from kafkalab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming import StreamingQuery

__all__ = ["new_progress", "require_running", "show_progress"]

_SHOWN = 8  # batches
_BAR = 160  # pixels
_ENDS = ("startOffset", "endOffset", "latestOffset")


def require_running(query: StreamingQuery) -> None:
    """Raise an error if a streaming query has ended.

    ``wait_until(…, unless=lambda: require_running(query))`` stops waiting if the query fails.

    Raises
    ------
    StreamingQueryException
        If the query failed.
    KafkaLabError
        If somebody stopped it.
    """
    if query.isActive:
        return
    if (error := query.exception()) is not None:
        raise error
    raise KafkaLabError(f"the query {query.name or query.id} was stopped")


def new_progress(query: StreamingQuery, since: str = "") -> list[dict[str, Any]]:
    """Return a streaming query's reports on its latest batches, the oldest first, in Spark's JSON.

    They are those of ``query.recentProgress``. But PySpark fetches each field of each batch separately. For a caller that
    looks once a second, those thousands of calls keep a processor busy.

    Parameters
    ----------
    query
        A query that was started.
    since
        The ``timestamp`` of the last report that you know. Without it, all reports are returned.
    """
    if not hasattr(query, "_jsq"):  # over Spark Connect they all come at once
        reports = [json.loads(progress.json) for progress in query.recentProgress]
        return [_as_spark_json(progress) for progress in reports if progress["timestamp"] > since]
    reports = []
    for progress in reversed(query._jsq.recentProgress()):
        if progress.timestamp() == since:
            break
        reports.append(json.loads(progress.json()))
    return reports[::-1]


def _as_spark_json(progress: dict[str, Any]) -> dict[str, Any]:
    """Convert Spark Connect's report on a batch to Spark's own JSON. Connect omits sums, and has metrics in columns."""
    sources = progress["sources"]
    sums = {name: sum(float(source[name]) for source in sources) for name in ("inputRowsPerSecond", "processedRowsPerSecond")}
    metrics = {
        name: dict(zip([field["name"] for field in row["schema"]["fields"]], row["values"], strict=True))
        for name, row in progress["observedMetrics"].items()
    }
    return {
        **progress,
        "numInputRows": sum(source["numInputRows"] for source in sources),
        **{name: value for name, value in sums.items() if math.isfinite(value)},
        "sources": [{**source, **{end: json.loads(source[end] or "null") for end in _ENDS}} for source in sources],
        "observedMetrics": metrics,
    }


def show_progress(query: StreamingQuery, timeout: float = 120.0) -> int:
    """Show a streaming query's batches until it has processed all records that exist now, or has ended.

    A notebook shows a growing table, a terminal a line per batch. The query itself goes on.

    Returns
    -------
    int
        How many records it has read so far.

    Raises
    ------
    StreamingQueryException
        If the query failed.
    WaitTimeout
        If it still has something to do after `timeout` seconds.
    """
    view = _Table() if _in_notebook() else _Lines()
    batches: dict[int, Mapping[str, Any]] = {}
    called_at = datetime.now(UTC)
    catching_up = _CatchingUp(query)
    catching_up.start()

    def look() -> bool:
        ended = not catching_up.is_alive()
        known = next(reversed(batches.values()), {"timestamp": ""})
        batches.update({p["batchId"]: p for p in new_progress(query, known["timestamp"])})
        done = ended or any(_took_all(batch, called_at) for batch in batches.values())
        view.show(list(batches.values()), done)
        return done

    wait_until(look, timeout, "the query to process all that is there", last_seen=lambda: query.status, interval=0.3)
    if catching_up.error is not None:
        raise catching_up.error
    return sum(p["numInputRows"] for p in batches.values())


def _took_all(batch: Mapping[str, Any], since: datetime) -> bool:
    # While producers write, there is always more. The records that existed when the batch began are enough.
    offsets = [(source["endOffset"], source.get("latestOffset")) for source in batch["sources"]]
    return datetime.fromisoformat(batch["timestamp"]) >= since and all(
        end == latest and latest is not None  # some sources have no latest offset
        for end, latest in offsets
    )


class _CatchingUp(threading.Thread):
    """Call ``processAllAvailable``, which blocks until nothing is left, and raises if the query failed."""

    def __init__(self, query: StreamingQuery) -> None:
        super().__init__(name="processAllAvailable", daemon=True)
        self.error: Exception | None = None
        self._query = query

    def run(self) -> None:
        try:
            self._query.processAllAvailable()
        except Exception as error:
            self.error = error


class _Lines:
    def __init__(self) -> None:
        self._shown = 0

    def show(self, batches: list[Mapping[str, Any]], done: bool) -> None:
        for batch in batches[self._shown :]:
            print(f"batch {batch['batchId']}: {batch['numInputRows']} records, {_rate(batch)}")
        self._shown = len(batches)


class _Table:
    """A table that each look replaces, so the stored notebook keeps only the last one."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html: Any = HTML
        self._handle: Any = display(HTML(""), display_id=True)
        self._last = ""

    def show(self, batches: list[Mapping[str, Any]], done: bool) -> None:
        page = _page(batches, done)
        if page != self._last:
            self._last = page
            self._handle.update(self._html(page))


def _page(batches: list[Mapping[str, Any]], done: bool) -> str:
    total = sum(batch["numInputRows"] for batch in batches)
    most = max((batch["numInputRows"] for batch in batches), default=0) or 1
    rows = "".join(
        f"<tr><td>{batch['batchId']}</td><td>{batch['numInputRows']:,}</td>"
        f'<td style="text-align:left"><div style="background:#4c78a8;height:.8em;'
        f'width:{round(_BAR * batch["numInputRows"] / most)}px"></div></td>'
        f"<td>{html.escape(_rate(batch))}</td></tr>"
        for batch in batches[-_SHOWN:]
    )
    state = "all processed" if done else "running …"
    return (
        "<table><thead><tr><th>batch</th><th>records</th><th></th><th>speed</th></tr></thead>"
        f"<tbody>{rows}</tbody></table><p>{total:,} records in {len(batches)} batches, {state}</p>"
    )


def _rate(batch: Mapping[str, Any]) -> str:
    # For a batch that took no time, Spark omits the rate or sets it to NaN.
    rate = batch.get("processedRowsPerSecond")
    return f"{rate:,.0f} records/s" if rate is not None and not math.isnan(rate) else "–"


def _in_notebook() -> bool:
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None
