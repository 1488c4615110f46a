"""The panel's tabs: which there are, who is asked and when, and what they say of each service."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html import escape
from types import SimpleNamespace
from typing import Any

import comm
import ipywidgets
import pytest

from kafkalab import running
from kafkalab.cluster.view import MemberView, ShareGroupView
from kafkalab.errors import ConnectFailed, RegistryFailed
from kafkalab.services.base import Service
from kafkalab.services.connect_view import ConnectView, WorkerView, connectors_in
from kafkalab.services.registry_view import RegistryView, SubjectView
from kafkalab.waiting import wait_until
from kafkalab.widgets import ClusterMap
from kafkalab.widgets.attention import Attention
from kafkalab.widgets.clock import Clock
from kafkalab.widgets.connect_tab import connect_page
from kafkalab.widgets.groups_tab import GroupsOf, groups_page
from kafkalab.widgets.panel import ClusterPanel, add_pages
from kafkalab.widgets.registry_tab import registry_page
from kafkalab.widgets.tab_drawing import state, trouble
from kafkalab.widgets.tabs import Page, Tabs
from kafkalab.widgets.visibility import TARGET, Visibility
from support import PATIENCE
from virtual_clock import VirtualClock
from widget_support import TOPIC, FakeCluster, group, healthy, html


class Something:
    """Runs until it's stopped, and counts how often it's asked."""

    def __init__(self, says: str = "here I am") -> None:
        self.says = says
        self.error: Exception | None = None
        self.asked = 0
        self.by: set[str] = set()
        self.callbacks: list[Callable[[], None]] = []

    def draw(self) -> str:
        self.asked += 1
        self.by.add(threading.current_thread().name)
        if self.error is not None:
            raise self.error
        return self.says

    def on_stop(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def stop(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()


@pytest.fixture
def tabs() -> Iterator[Tabs]:
    """Tabs that nobody sees yet."""
    tabs = Tabs(ipywidgets.VBox())
    yield tabs
    tabs.seen(())


def page(title: str = "Things", every: float = 0.01, clock: Clock | None = None) -> Page:
    return Page(title, Something.draw, every, clock)


def says(shown: Page, words: str) -> bool:
    return words in shown.widget.value


def test_a_page_is_there_while_something_runs(tabs: Tabs) -> None:
    things, first, second = page(), Something(), Something()
    before = tabs.widget.children
    for one in (first, second):
        tabs.follow(things, one, one.on_stop)
    assert tabs.titles == ["Things"] and tabs.widget.children == (*before, things.widget)
    first.stop()
    assert tabs.titles == ["Things"]
    second.stop()
    assert tabs.titles == [] and tabs.widget.children == before


def test_the_browser_finds_the_tablist_and_the_title_of_each_page(tabs: Tabs) -> None:
    one, things = Something(), page("<Things>")
    tabs.follow(things, one, one.on_stop)
    assert '<div role="tablist"' in html(tabs.widget.children[0])
    assert '<span class="kafkalab-title" hidden>&lt;Things&gt;</span>' in html(tabs.widget.children[2])


def test_only_a_page_that_somebody_sees_is_asked(tabs: Tabs) -> None:
    clock = VirtualClock(threads=1)
    front, behind = Something(), Something()
    for title, one in (("Front", front), ("Behind", behind)):
        tabs.follow(page(title, 2.0, clock), one, one.on_stop)
    assert (front.asked, behind.asked) == (0, 0)
    tabs.seen({"Front"})
    clock.advance(10.0)
    tabs.seen({"Front"})  # said again
    clock.advance(2.0)
    assert (front.asked, behind.asked) == (7, 0)
    assert front.by == {"kafkalab-Front"}
    tabs.seen(())
    wait_until(lambda: not clock._wake_ups, PATIENCE, "the thread to end")
    clock.move_to(100.0)
    tabs.seen({"Behind"})
    clock.advance(1.0)
    assert (front.asked, behind.asked) == (7, 1)
    behind.stop()
    wait_until(lambda: not clock._wake_ups, PATIENCE, "the thread to end")


def test_a_page_that_comes_again_is_asked_if_it_is_still_in_front(tabs: Tabs) -> None:
    first, second, things = Something(), Something("again"), page()
    tabs.follow(things, first, first.on_stop)
    tabs.seen({"Things"})
    first.stop()
    tabs.follow(things, second, second.on_stop)
    wait_until(lambda: says(things, "again"), PATIENCE, "the second one to be asked")


def test_an_error_is_one_line_and_goes_when_there_is_an_answer_again(tabs: Tabs) -> None:
    things, broken, whole = page(), Something("better now"), Something("all well")
    broken.error = ConnectFailed("no worker <answers>\nTraceback: and more")
    for one in (broken, whole):
        tabs.follow(things, one, one.on_stop)
    assert says(things, "Asking")
    tabs.seen({"Things"})
    wait_until(lambda: says(things, "no worker &lt;answers&gt;") and says(things, "all well"), PATIENCE, "the error")
    assert not says(things, "Traceback")
    broken.error = KeyError()
    wait_until(lambda: says(things, "KeyError"), PATIENCE, "an error without words")
    broken.error = None
    wait_until(lambda: says(things, "better now") and not says(things, "KeyError"), PATIENCE, "the answer")


def test_a_late_answer_is_not_shown_on_a_page_that_is_gone(tabs: Tabs) -> None:
    asked, answer = threading.Event(), threading.Event()

    class Slow(Something):
        def draw(self) -> str:
            asked.set()
            answer.wait(PATIENCE)
            return "too late"

    slow, things = Slow(), Page("Slow", Slow.draw)
    tabs.follow(things, slow, slow.on_stop)
    tabs.seen({"Slow"})
    assert asked.wait(PATIENCE)
    slow.stop()
    asking = [thread for thread in threading.enumerate() if thread.name == "kafkalab-Slow"]
    answer.set()
    for thread in asking:
        thread.join(PATIENCE)
    assert asking and not says(things, "too late")


def test_a_page_is_seen_while_any_browser_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    targets: dict[str, Callable[..., None]] = {}

    class Manager:
        def register_target(self, name: str, opened: Callable[..., None]) -> None:
            targets[name] = opened

    class Browser:
        def __init__(self, comm_id: str, page: str) -> None:
            self.comm_id = comm_id
            targets[TARGET](self, said(page=page))

        def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None:
            self.shows = lambda page: callback(said(page=page))

        def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None:
            self.close = lambda: callback(said())

    def said(**data: str) -> dict[str, Any]:
        return {"content": {"data": data}}

    monkeypatch.setattr(comm, "get_comm_manager", Manager)
    seen: list[set[str]] = []
    Visibility(lambda pages: seen.append(set(pages)))
    first, second = Browser("1", ""), Browser("2", "Map")
    first.shows("Connect")
    second.shows("")
    first.close()
    assert [pages - {""} for pages in seen] == [set(), {"Map"}, {"Map", "Connect"}, {"Connect"}, set()]


def test_browsers_say_that_somebody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = Attention()
    monkeypatch.setattr("kafkalab.widgets.visibility.ATTENTION", attention)
    noted: list[bool] = []
    monkeypatch.setattr(attention, "note", lambda: noted.append(True))
    opened: list[Callable[[Any, dict[str, Any]], None]] = []
    monkeypatch.setattr(comm, "get_comm_manager", lambda: SimpleNamespace(register_target=lambda _, call: opened.append(call)))
    Visibility(lambda pages: None)
    browser = SimpleNamespace(comm_id="1", on_msg=lambda call: None, on_close=lambda call: None)
    for looks, times in ((True, 1), (False, 1), (True, 2)):
        opened[0](browser, {"content": {"data": {"page": "", "looks": looks}}})
        assert len(noted) == times


@pytest.mark.parametrize("word", ["RUNNING", "Stable", "FAILED", "killed: it was a test", "PAUSED", "rebalancing"])
def test_a_state_has_a_form_besides_its_colour(word: str) -> None:
    forms = {"RUNNING": "●", "Stable": "●", "FAILED": "✕", "killed: it was a test": "✕", "PAUSED": "‖", "rebalancing": "◌"}
    assert f"{forms[word]}</span> {word}" in state(word)


def test_a_long_reason_is_cut() -> None:
    assert len(trouble("x" * 5000)) < 400 and "…" in trouble("x" * 5000)


def test_groups_have_a_tab_while_a_cluster_has_any(tabs: Tabs) -> None:
    here, there = FakeCluster("here"), FakeCluster("there")
    groups = page("Groups")
    one, other = GroupsOf(here, tabs, groups), GroupsOf(there, tabs, groups)
    lag = {(TOPIC, 0): 1234, (TOPIC, 1): 0, (TOPIC, 2): 3}
    view = replace(healthy(), groups={"g": group(("<a>", [(TOPIC, 0), (TOPIC, 4)]), ("b", []), lag=lag, id_="g")})
    one.seen(healthy(), (), True)
    assert tabs.titles == []
    one.seen(view, (), True)
    assert tabs.titles == ["Groups"]
    drawn = groups_page(one)
    for words in (
        "Stable",
        "2 members",
        "lag 1,237",
        "&lt;a&gt;",
        "nobody",
        "unknown",
        "Without partitions: b",
        "classic protocol",
    ):
        assert words in drawn, words
    assert "in here" not in drawn
    other.seen(view, (), True)
    assert "in here" in groups_page(one) and "in there" in groups_page(other)
    one.seen(healthy(), (), True)
    other.ended()
    assert tabs.titles == []
    other.ended()  # nothing left to remove


def test_a_share_group_has_several_members_in_a_partition(tabs: Tabs) -> None:
    one = GroupsOf(FakeCluster("here"), tabs, page("Groups"))
    members = tuple(MemberView(name, name, ((TOPIC, 0),)) for name in ("b", "<a>"))
    shared = ShareGroupView("sharers", "Stable", members, {(TOPIC, 0): 5}, {(TOPIC, 0): 2, (TOPIC, 1): 0})
    one.seen(replace(healthy(), share_groups={"sharers": shared}), (), True)
    assert tabs.titles == ["Groups"]
    drawn = groups_page(one)
    for words in ("sharers", "share group", "2 members", "lag 2", "&lt;a&gt;, b", "nobody"):
        assert words in drawn, words
    one.seen(healthy(), (), True)
    assert tabs.titles == []


WORKERS = (WorkerView(0, "http://127.0.0.1:15001", True), WorkerView(1, "http://127.0.0.1:15002", False))


class FakeConnect(Something):
    """Connect with a task that failed."""

    view = ConnectView(
        WORKERS,
        connectors_in(
            {
                "<files>": {
                    "status": {
                        "type": "sink",
                        "connector": {"state": "RUNNING", "worker_id": "127.0.0.1:15001"},
                        "tasks": [
                            {
                                "id": 0,
                                "state": "FAILED",
                                "worker_id": "127.0.0.1:15001",
                                "trace": "java.io.IOException: no\n\tat x",
                            },
                            {"id": 1, "state": "RUNNING", "worker_id": "127.0.0.1:15001"},
                        ],
                    }
                }
            },
            WORKERS,
            {"connect-<files>": 7},
        ),
    )

    def describe(self) -> ConnectView:
        self.asked += 1
        return self.view


def test_connect_shows_workers_connectors_tasks_and_why_one_failed() -> None:
    connect = FakeConnect()
    drawn = connect_page(connect)
    for words in ("worker 1", "not running", "&lt;files&gt;", "sink", "lag 7", "FAILED", "worker 0", "IOException: no"):
        assert words in drawn, words
    assert "at x" not in drawn
    connect.view = ConnectView(WORKERS, ())
    assert "There is no connector." in connect_page(connect)
    connect.view = ConnectView(WORKERS, None)
    assert "No worker answers." in connect_page(connect)


class FakeRegistry(Something):
    """A registry with two subjects."""

    product = "Apicurio Registry"

    def describe(self) -> RegistryView:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return RegistryView("BACKWARD", (SubjectView("<prices>-value", (1, 2, 4)), SubjectView("trucks-value", (1,), "NONE")))


def test_the_registry_shows_subjects_versions_and_compatibility() -> None:
    drawn = registry_page(FakeRegistry())
    for words in ("Apicurio Registry", "2 subjects", "&lt;prices&gt;-value", "1, 2, 4", "BACKWARD", "<b>NONE</b>"):
        assert words in drawn, words


def test_the_panel_has_a_tab_for_each_service_that_runs(panel: ClusterPanel) -> None:
    add_pages(panel.tabs)
    services = {"Connect": (running.connect_clusters, FakeConnect()), "Registry": (running.registries, FakeRegistry())}
    for register, service in services.values():
        register.announce(service, service.on_stop)
    assert panel.tabs.titles == [*services]
    for title, (_, service) in services.items():
        assert not service.asked
        panel.tabs.seen({title})
        wait_until(partial(getattr, service, "asked"), PATIENCE, "the service to be asked")
    services["Registry"][1].error = RegistryFailed("the schema registry isn't running")
    panel.tabs.seen({"Registry"})
    wait_until(lambda: escape("isn't running") in html(panel.tabs.widget), PATIENCE, "the error")
    assert "prices" not in html(panel.tabs.widget)
    for _, service in services.values():
        service.stop()
    assert panel.tabs.titles == []


def test_a_clusters_groups_come_from_its_watcher(panel: ClusterPanel, cluster: FakeCluster) -> None:
    add_pages(panel.tabs)
    panel.follow(cluster, cluster.nodes.on_stop, ClusterMap)
    running.clusters.announce(cluster, cluster.nodes.on_stop)
    cluster.view = replace(cluster.view, groups={"mygroup": group(("a", [(TOPIC, 0)]), lag={(TOPIC, 0): 5})})
    wait_until(lambda: panel.tabs.titles == ["Groups"], PATIENCE, "the group to be seen")
    panel.tabs.seen({"Groups"})
    wait_until(lambda: "classic protocol" in html(panel.tabs.widget), PATIENCE, "the group to be shown")
    cluster.stop()
    assert panel.tabs.titles == []


def test_a_service_announces_itself_once_until_it_stops() -> None:
    register: running.Register[Any] = running.Register()

    class Tried(Service):
        _KIND, _WHO, _NOUN, _FAILURE, _REGISTER = "tried", "the service", "service", RegistryFailed, register
        running = False

        def _make_run(self) -> Any:
            return object()

        def _set_up(self, run: object) -> None:
            pass

        def _begin(self) -> None:
            self.running = True

    heard: list[Tried] = []
    register.for_each(lambda one, on_stop: heard.append(one))
    service = Tried().start()
    service.running = False  # it crashed
    service.start()
    assert heard == [service]
    service.stop()
    service.running = False
    service.start()
    assert heard == [service, service]
