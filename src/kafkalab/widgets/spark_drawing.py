"""A Spark cluster as a card: in HTML that follows the page's theme, and in plain text."""

from __future__ import annotations

from html import escape

from kafkalab.spark.view import ExecutorView, QueryView, SparkView, SparkWorkerView
from kafkalab.widgets.card import CELL, card, heading, process
from kafkalab.widgets.palette import LAG, THEMED, readable

__all__ = ["spark_html", "spark_text"]

_NO_DRIVER = "No session of this notebook uses it."
_NO_QUERY = "No stream runs."
_BREAK = '<div style="height:6px"></div>'


def spark_html(view: SparkView) -> str:
    """All of it as one card."""
    workers = " ".join(_worker_html(worker) for worker in view.workers)
    body = f"{process('master', view.master)} {_muted(_registered(view))}{_BREAK}{workers}{_BREAK}"
    if not view.queries:
        return card(body + _muted(_idle(view)))
    rows = "".join(_query_html(query) for query in view.queries)
    head = heading("stream", "batch", "records", "per second", "to read")
    table = f'<table style="border-collapse:collapse;margin:0;font-size:13px">{head}{rows}</table>'
    return card(f"{body}{_driver(view)}{table}")


def _worker_html(worker: SparkWorkerView) -> str:
    inside = "".join(f"<div>{_executor(one)}</div>" for one in worker.executors)
    nothing = "<div>no executor</div>" if worker.alive else ""
    return process(f"worker {worker.number}", worker.alive, inside or nothing)


def _muted(words: str) -> str:
    return f'<span style="color:{THEMED.muted}">{escape(words)}</span>'


def _query_html(query: QueryView) -> str:
    lag = f'<span style="color:{readable(LAG)}">{query.lag:,}</span>' if query.lag else _lag(query)
    batch = "–" if query.batch is None else str(query.batch)
    cells = (f"<b>{escape(query.name)}</b>", batch, f"{query.records:,}", f"{query.rate:,.0f}", lag)
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _lag(query: QueryView) -> str:
    return "–" if query.lag is None else f"{query.lag:,}"


def _executor(executor: ExecutorView) -> str:
    did = "starting" if executor.tasks is None else f"{executor.tasks:,} task{'' if executor.tasks == 1 else 's'} done"
    return f"executor {executor.number}: {did}"


def _registered(view: SparkView) -> str:
    return f"{view.registered} of {len(view.workers)} workers registered"


def _driver(view: SparkView) -> str:
    return _muted(f"driver: {view.driver}, in this notebook")


def _idle(view: SparkView) -> str:
    return f"driver: {view.driver}, in this notebook. {_NO_QUERY}" if view.driver else _NO_DRIVER


def spark_text(view: SparkView) -> str:
    """The same in plain text."""
    lines = [f"master: {'running' if view.master else 'not running'}, {_registered(view)}"]
    for worker in view.workers:
        inside = ", ".join(map(_executor, worker.executors)) or "no executor"
        lines.append(f"worker {worker.number}: {inside if worker.alive else 'not running'}")
    for query in view.queries:
        batch = "no batch yet" if query.batch is None else f"batch {query.batch}, {query.records} records"
        lines.append(f"stream {query.name}: {batch}, to read: {_lag(query)}")
    if not view.queries:
        lines.append(_idle(view))
    return "\n".join(lines)
