"""What the panel says about the notebook's Spark session."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from kafkalab.widgets.tab_drawing import bar, heading, muted, table

if TYPE_CHECKING:
    from kafkalab.spark.session_view import JobView, SessionView
    from kafkalab.spark.view import QueryView

__all__ = ["session_html", "spark_page"]

_LONGEST = 24  # characters of a stage's name


def spark_page(session: Any) -> str:
    """Return the running jobs of a session with the progress of their stages, and its streams."""
    from kafkalab.spark.session_view import describe_session  # pyspark takes a second, and is there if a session is

    return session_html(describe_session(session))


def session_html(view: SessionView) -> str:
    """Return the same of a snapshot."""
    jobs = view.jobs
    head = heading("Spark session", muted(view.place))
    if jobs is None:
        words = muted("Spark Connect doesn't tell which jobs run.")
    else:
        words = "".join(map(_job, jobs)) or muted("No job runs.")
    return head + words + _queries(view.queries)


def _job(job: JobView) -> str:
    rows = []
    for stage in job.stages:
        name = stage.name if len(stage.name) <= _LONGEST else f"{stage.name[: _LONGEST - 1]}…"
        failed = f' <span class="bad">{stage.failed:,} failed</span>' if stage.failed else ""
        tasks = bar(stage.done, stage.tasks, f"stage {stage.number}") + muted(f", {stage.active:,} running") + failed
        rows.append((str(stage.number), f'<span title="{escape(stage.name)}">{escape(name)}</span>', tasks))
    return table((f"job {job.number}: stage", "what", "tasks"), rows)


def _queries(queries: tuple[QueryView, ...]) -> str:
    if not queries:
        return f"<div>{muted('No stream runs.')}</div>"
    rows = [
        (f"<b>{escape(query.name)}</b>", "–" if query.batch is None else str(query.batch), f"{query.records:,}",
         f"{query.rate:,.0f}", "–" if query.lag is None else f"{query.lag:,}")
        for query in queries
    ]  # fmt: skip
    return table(("stream", "last batch", "its rows", "rows/s", "to read"), rows)
