"""What the panel's pages say about MirrorMaker, Kafka Streams and Spark, and how those that run are known."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, ClassVar

import pyspark
import pytest
from py4j.protocol import Py4JNetworkError

from kafkalab import running
from kafkalab.errors import MirrorFailed, RegistryFailed, SparkFailed, StreamsFailed
from kafkalab.services import MirrorMaker, SchemaRegistry
from kafkalab.services import mirror as mirror_module
from kafkalab.services.mirror_status import Flow
from kafkalab.services.mirror_view import CopyView, FlowView, copies_of
from kafkalab.services.registry_view import RegistryView, SubjectView, registry_at
from kafkalab.spark import session_end, session_view
from kafkalab.spark.session_end import SessionEnd
from kafkalab.spark.session_view import JobView, SessionView, StageView, describe_session
from kafkalab.spark.view import QueryView
from kafkalab.streams.app import StreamsApp, _AppProcess
from kafkalab.streams.view import StreamsView, threads_in
from kafkalab.waiting import wait_until
from kafkalab.widgets.mirror_tab import mirror_page
from kafkalab.widgets.panel import ClusterPanel, add_pages
from kafkalab.widgets.spark_tab import session_html
from kafkalab.widgets.streams_tab import streams_page
from support import PATIENCE
from widget_support import html

FLOW = Flow("first", "second")


@pytest.mark.parametrize(
    ("settings", "copies"),
    [
        ({}, {"prices": "first.prices", "trucks": "first.trucks"}),
        ({"topics": "trucks"}, {"trucks": "first.trucks"}),
        ({"topics": "trucks", "first->second.topics": "none, pri.*"}, {"prices": "first.prices"}),
        ({"replication.policy.separator": "-"}, {"prices": "first-prices"}),
        ({"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}, {"prices": "prices"}),
    ],
)
def test_a_copy_is_called_as_the_settings_say(settings: dict[str, str], copies: dict[str, str]) -> None:
    source, target = ("prices", "trucks", "second.other"), ("first.prices", "first.trucks", "first-prices", "prices", "own")
    assert copies_of(FLOW, settings, source, target) == copies


def test_mirrormaker_shows_its_flows_their_failures_and_how_far_copies_reach() -> None:
    states = {"MirrorSourceConnector": "RUNNING", "MirrorSourceConnector task 0": "FAILED"}
    failures = {"MirrorSourceConnector task 0": "TimeoutException: <slow>\n\tat x"}
    view = FlowView(FLOW, states, failures, (CopyView("prices", "first.prices", 1500, 1480),))
    drawn = mirror_page(SimpleNamespace(describe=lambda: [view, FlowView(Flow("second", "first"), {}, {}, ())]))
    for words in ("first → second", "FAILED", "task 0: TimeoutException: &lt;slow&gt;", "end in second", "1,500", "1,480"):
        assert words in drawn, words
    assert "at x" not in drawn
    assert "second → first" in drawn and "It has copied no topic yet." in drawn


DESCRIPTION = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [trucks])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [counts])
      --> none
"""
THREADS = threads_in(
    [
        {"name": "app-StreamThread-1", "state": "RUNNING", "active": {"0_1": ["trucks-1"]}, "standby": {"0_0": []}},
        {"name": "app-StreamThread-2", "state": "STARTING", "active": {}, "standby": {}},
    ]
)


def test_streams_shows_threads_tasks_and_stores() -> None:
    view = StreamsView("app", "counts", "RUNNING", THREADS, DESCRIPTION, {"counts": 1234})
    drawn = streams_page(SimpleNamespace(view=lambda: view))
    for words in ("application counts", ">StreamThread-1<", "0_1", "trucks-1", " standby", "StreamThread-2", "counts", "1,234"):
        assert words in drawn, words


def test_streams_shows_why_an_application_failed() -> None:
    view = StreamsView("app", "app", "failed: ValueError: <no>\nTraceback", (), "", {})
    drawn = streams_page(SimpleNamespace(view=lambda: view))
    assert "✕</span> failed" in drawn and "ValueError: &lt;no&gt;" in drawn and "Traceback" not in drawn
    assert "application app" not in drawn


@pytest.mark.parametrize(
    ("state", "is_over"), [("stopped", True), ("ended with the cluster", True), ("killed", False), ("failed", False)]
)
def test_an_application_stays_in_sight_until_it_is_stopped(state: str, is_over: bool) -> None:
    """Why it failed, or that it was killed, is what somebody looks for."""
    ended: list[str] = []
    app = StreamsApp(SimpleNamespace(), _topology)
    app.on_stop(lambda: ended.append("once"))
    process = _AppProcess.__new__(_AppProcess)
    process._state, process._when_stopped = state, app._stopped
    process._has_ended()
    assert bool(ended) == is_over
    app._stopped()  # the cluster stops
    app._stopped()
    assert ended == ["once"]


def _topology(builder: object) -> None:
    """Never built."""


def test_spark_shows_jobs_with_the_progress_of_stages_and_streams() -> None:
    stages = (StageView(7, "count at <console>" + 60 * "x", 200, 50, 2, 1), StageView(8, "save", 2, 0, 0, 0))
    view = SessionView("local[2]", (JobView(3, stages),), (QueryView("<alarms>", 41, 1200, 350.4, 9000), QueryView("new")))
    drawn = session_html(view)
    for words in (
        "local[2]", "job 3", 'max="200" value="50"', "50 of 200", ", 2 running", "1 failed", "count at &lt;console&gt;",
        "&lt;alarms&gt;", "41", "1,200", "350", "9,000", "–",
    ):  # fmt: skip
        assert words in drawn, words
    idle = session_html(SessionView("local[2]", (), ()))
    assert "No job runs." in idle and "No stream runs." in idle
    assert "tell which jobs run." in session_html(SessionView("sc://there:15002", None, ()))


class Tracker:
    """A job with a stage that runs and one that hasn't begun; another job has just ended."""

    def getActiveJobsIds(self) -> list[int]:
        return [4, 3]

    def getJobInfo(self, number: int) -> Any:
        return SimpleNamespace(stageIds=[6, 5]) if number == 3 else None

    def getStageInfo(self, number: int) -> Any:
        if number == 6:
            return None
        return SimpleNamespace(stageId=5, name="count", numTasks=2, numCompletedTasks=1, numActiveTasks=1, numFailedTasks=0)


class Session:
    """Stands in for a session in this process."""

    _jsparkSession = None

    def __init__(self) -> None:
        self._sc = self.sparkContext = SimpleNamespace(master="local[2]", statusTracker=Tracker)
        self.streams = SimpleNamespace(active=[SimpleNamespace(name="counts", lastProgress=None)])


class Running:
    """A service that tells the same whenever it's asked, or refuses."""

    def __init__(self, told: object) -> None:
        self.told = told
        self.callbacks: list[Callable[[], None]] = []

    def describe(self) -> Any:
        if isinstance(self.told, Exception):
            raise self.told
        return self.told

    view = describe

    def on_stop(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)


@pytest.mark.parametrize(
    ("register", "title", "service", "words"),
    [
        ("mirrors", "Mirror", Running([FlowView(FLOW, {}, {}, ())]), "first → second"),
        ("mirrors", "Mirror", Running(MirrorFailed("MirrorMaker ended\nwith a trace")), "MirrorMaker ended"),
        ("streams_apps", "Streams", Running(StreamsView("app", "app", "RUNNING", THREADS, "", {})), "StreamThread-1"),
        ("streams_apps", "Streams", Running(StreamsFailed("app doesn't answer")), "answer"),
        ("spark_sessions", "Spark", Running(None), "Spark doesn"),
    ],
)
def test_the_panel_has_a_page_while_one_runs(
    register: str, title: str, service: Running, words: str, panel: ClusterPanel
) -> None:
    add_pages(panel.tabs)
    assert panel.tabs.titles == []
    getattr(running, register).announce(service, service.on_stop)
    assert panel.tabs.titles == [title] and "Asking" in html(panel.tabs.widget)
    panel.tabs.seen({title})
    wait_until(lambda: words in html(panel.tabs.widget), PATIENCE, "the page")
    assert "trace" not in html(panel.tabs.widget)
    for callback in service.callbacks:
        callback()
    assert panel.tabs.titles == []


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The JVM of each session."""
    process = SimpleNamespace(poll=lambda: None)
    monkeypatch.setattr(session_view, "jvm_process", lambda session: process)
    return process


def test_a_session_tells_its_jobs_stages_and_streams(jvm: SimpleNamespace) -> None:
    jobs = (JobView(3, (StageView(5, "count", 2, 1, 1, 0),)),)
    assert describe_session(Session()) == SessionView("local[2]", jobs, (QueryView("counts"),))


def test_a_session_that_is_gone_is_said_to_be(jvm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()

    def refuse() -> Tracker:
        raise Py4JNetworkError("nobody listens")

    session.sparkContext.statusTracker = refuse
    with pytest.raises(SparkFailed, match="doesn't answer"):
        describe_session(session)
    jvm.poll = lambda: -9
    with pytest.raises(SparkFailed, match="JVM is gone"):
        describe_session(session)


def test_the_end_of_a_session_is_noticed_after_the_cell_that_stopped_it(monkeypatch: pytest.MonkeyPatch) -> None:
    after_cell: list[Callable[..., None]] = []
    events = SimpleNamespace(
        register=lambda _, call: after_cell.append(call), unregister=lambda _, call: after_cell.remove(call)
    )
    monkeypatch.setattr(session_end, "get_ipython", lambda: SimpleNamespace(events=events))
    session, ended = Session(), []
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", session._sc)
    SessionEnd(session).on_stop(lambda: ended.append(session))
    after_cell[0]()
    assert not ended
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", None)
    after_cell[0]()
    assert ended == [session] and not after_cell


class RegistryApi(BaseHTTPRequestHandler):
    """Answers as a registry with two subjects, one of which has a level of its own."""

    answers: ClassVar[dict[str, object]] = {
        "/subjects": ["trucks", "a/b ä"],
        "/subjects/trucks/versions": [1, 3],
        "/subjects/a%2Fb%20%C3%A4/versions": [1],
        "/config": {"compatibilityLevel": "BACKWARD"},
        "/config/trucks": {"compatibilityLevel": "FULL"},
    }

    def do_GET(self) -> None:
        answer = self.answers.get(self.path)
        self.send_response(404 if answer is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_registry_is_asked_for_subjects_versions_and_levels() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), RegistryApi) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        view = registry_at(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert view == RegistryView("BACKWARD", (SubjectView("a/b ä", (1,)), SubjectView("trucks", (1, 3), "FULL")))


def test_a_registry_that_does_not_run_says_so() -> None:
    with pytest.raises(RegistryFailed, match="isn't running"):
        SchemaRegistry(SimpleNamespace()).describe()


def test_mirrormaker_tells_of_each_flow_what_belongs_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {("first", "prices"): {0: 700, 1: 800}, ("second", "first.prices"): {0: 1480}}
    brokers = {0: "up"}
    clusters = {
        alias: SimpleNamespace(
            name=alias,
            describe=lambda groups, topics=topics: SimpleNamespace(topics=topics),
            nodes=SimpleNamespace(states=lambda: brokers),
        )
        for alias, topics in (("first", ["prices"]), ("second", ["first.prices"]))
    }
    monkeypatch.setattr(mirror_module, "end_offsets", lambda cluster, topic: ends[cluster.name, topic])
    maker = MirrorMaker(clusters, {"first->second.enabled": True, "second->first.enabled": True})
    with pytest.raises(MirrorFailed):
        maker.describe()
    maker._run, maker._server = SimpleNamespace(), SimpleNamespace(require_alive=lambda: None)
    said = {"first->second MirrorSourceConnector": "RUNNING", "second->first MirrorSourceConnector": "FAILED"}
    failed = {"second->first MirrorSourceConnector": "no"}
    maker._status = SimpleNamespace(states=lambda: said, failures=lambda: failed)
    assert maker.describe() == [
        FlowView(FLOW, {"MirrorSourceConnector": "RUNNING"}, {}, (CopyView("prices", "first.prices", 1500, 1480),)),
        FlowView(Flow("second", "first"), {"MirrorSourceConnector": "FAILED"}, {"MirrorSourceConnector": "no"}, ()),
    ]
    brokers[0] = "dead"
    with pytest.raises(MirrorFailed, match="no broker of the cluster 'first' runs"):
        maker.describe()
