"""What is made of workers' answers: why a task failed, who has it, and the table that shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kafkalab.distribution.javac as javac
import kafkalab.services.own_plugins as plugins_module
from kafkalab import ConnectStatus, wait_until
from kafkalab.services.connect_view import ConnectView, WorkerView, connectors_in
from kafkalab.services.own_plugins import AVRO_CONVERTER, JDBC, MQTT_SOURCE, OwnPlugin
from kafkalab.services.traces import innermost_cause, reason
from kafkalab.widgets.connect_drawing import connect_html, connect_text
from support import PATIENCE
from widget_support import WIDGET_VIEW, Shown, html, show

WORKERS = (WorkerView(0, "http://127.0.0.1:15001", True), WorkerView(1, "http://127.0.0.1:15002", False))
TRACE = """\
org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliverMessages(WorkerSinkTask.java:636)
Caused by: org.apache.kafka.connect.errors.ConnectException: no database answers at 127.0.0.1:15432: see </tmp/x/y>
\tat kafkalab.Database.inTransaction(Database.java:90)
Caused by: org.postgresql.util.PSQLException: refused
\t... 12 more
"""
ANSWER = {
    "sink": {
        "status": {
            "name": "sink",
            "connector": {"state": "RUNNING", "worker_id": "127.0.0.1:15001"},
            "tasks": [
                {"id": 0, "state": "FAILED", "worker_id": "127.0.0.1:15002", "trace": TRACE},
                {"id": 1, "state": "RUNNING", "worker_id": "elsewhere:1"},
            ],
            "type": "sink",
        }
    },
    "<source>": {
        "status": {
            "name": "<source>",
            "connector": {"state": "PAUSED", "worker_id": "127.0.0.1:15001"},
            "tasks": [],
            "type": "source",
        }
    },
}
VIEW = ConnectView(WORKERS, connectors_in(ANSWER, WORKERS, {"connect-sink": 7, "other": 9}))


def test_an_answer_becomes_connectors_with_their_tasks_lag_and_reasons() -> None:
    assert VIEW.connectors is not None
    source, sink = VIEW.connectors
    assert (source.name, source.kind, source.itself.state, dict(source.tasks), source.lag) == (
        "<source>",
        "source",
        "PAUSED",
        {},
        None,
    )
    assert (sink.itself.worker, sink.tasks[0].worker, sink.tasks[1].worker, sink.lag) == (0, 1, None, 7)
    [error] = sink.errors
    assert error.startswith("ConnectException: no database answers") and error.endswith("; caused by PSQLException: refused")


def test_a_trace_tells_what_it_can() -> None:
    assert innermost_cause(TRACE) == "PSQLException: refused"
    assert reason("org.x.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.").startswith(
        "ConnectException"
    )
    assert reason("something else\n") == "something else"
    assert reason("") == "it gave no reason"


def test_the_table_says_all_in_the_colours_of_the_theme_and_nothing_of_the_machine() -> None:
    html, text = connect_html(VIEW), connect_text(VIEW)
    for said in (html, text):
        assert "worker 1" in said and "not running" in said and "FAILED" in said and "on worker 1" in said and "7" in said
        assert "15432" not in said and "/tmp" not in said and "PSQLException: refused" in said
    assert "&lt;source&gt;" in html and "<source>" not in html
    assert "background:var(--jp-layout-color1, #ffffff)" in html and "color:var(--jp-ui-font-color1, #1f2328)" in html
    assert "<source> (source) PAUSED: no task" in text


def test_the_table_says_when_nobody_answers_and_when_there_is_nothing() -> None:
    for connectors, words in ((None, "No worker answers."), ((), "There is no connector.")):
        view = ConnectView(WORKERS, connectors)
        assert words in connect_html(view) and words in connect_text(view)


class FakeConnect:
    """Describes what a test lets it see."""

    def __init__(self) -> None:
        self.view = ConnectView(WORKERS, ())
        self.callbacks: list[Callable[[], None]] = []

    def describe(self) -> ConnectView:
        return self.view

    def on_stop(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)


def test_it_follows_until_connect_stops_and_stays_as_it_was(shown: Shown) -> None:
    connect = FakeConnect()
    status = ConnectStatus(connect)
    show(status)
    ((live,),) = shown.values()
    assert "There is no connector." in live["text/plain"] and WIDGET_VIEW in live
    connect.view = VIEW
    wait_until(lambda: "FAILED" in html(status), PATIENCE, "the table to follow")
    [stopped] = connect.callbacks
    stopped()
    connect.view = ConnectView((), None)
    status.close()
    ((_, still),) = shown.values()
    assert "task 0 FAILED on worker 1" in still["text/plain"] and WIDGET_VIEW not in still


@pytest.mark.parametrize("plugin", [AVRO_CONVERTER, JDBC, MQTT_SOURCE])
def test_a_plugin_is_compiled_once_for_its_sources(plugin: OwnPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def compile_jar(sources: dict[str, str], services: object, classes: Path, jar: Path, report: object) -> None:
        compiled.append(sources)
        jar.touch()

    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path))
    monkeypatch.setattr(javac, "compile_jar", compile_jar)
    monkeypatch.setattr(plugins_module, "ensure_jars", lambda *_: [])
    monkeypatch.setattr(plugins_module, "connect_classpath", lambda _: "")
    jars = plugin.jars()
    assert plugin.jars() == jars and len(compiled) == 1
    assert all(source.count("\n") < 200 and f"class {name} " in source for name, source in compiled[0].items())
    monkeypatch.setattr(type(plugin), "sources", lambda _: {"Other": "class Other {}"})
    assert plugin.jars() != jars and len(compiled) == 2
