"""The output of workers, live and still."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kafkalab.waiting import wait_until
from kafkalab.widgets import Terminals
from kafkalab.widgets.terminals_drawing import Pane, pane_html, panes_html, panes_text
from support import PATIENCE
from widget_support import WIDGET_VIEW, Shown, html, show


def test_panes_are_escaped_and_say_how_it_ended() -> None:
    html = pane_html(Pane("<c1>", ["<b>m1</b>", "\x1b[31mred\x1b[0m"], "killed"))
    assert "&lt;c1&gt;" in html and "&lt;b&gt;m1&lt;/b&gt;" in html and "\x1b" not in html and "killed" in html


def test_still_panes_hold_no_addresses_and_folders() -> None:
    panes = [Pane("c1", ["127.0.0.1:40001 refused", "see /tmp/kafkalab-0/x.log", "a/b and 3/4 stay"], "ended")]
    for still in (panes_html(panes, 1), panes_text(panes)):
        assert "40001" not in still and "/tmp" not in still and "a/b and 3/4 stay" in still


class FakeWorker:
    def __init__(self, name: str) -> None:
        self.name, self.alive, self.state = name, True, "running"
        self.lines: list[str] = []
        self.callbacks: list[Callable[[str], object]] = []

    def on_line(self, callback: Callable[[str], object]) -> None:
        self.callbacks.append(callback)

    def say(self, line: str) -> None:
        self.lines.append(line)
        for callback in self.callbacks:
            callback(line)


def test_lines_arrive_and_stay_when_the_workers_have_ended(shown: Shown) -> None:
    workers = [FakeWorker("c1"), FakeWorker("c2")]
    terminals = Terminals(*workers)
    show(terminals)
    workers[0].say("m1")
    wait_until(lambda: "m1" in html(terminals.widget.children[0]), PATIENCE, "the line")
    for worker in workers:
        worker.alive, worker.state = False, "killed"
    (bundles,) = shown.values()
    wait_until(lambda: WIDGET_VIEW not in bundles[-1], PATIENCE, "the still copy")
    assert "m1" in bundles[-1]["text/html"] and "[c1: killed]" in bundles[-1]["text/plain"]


def test_terminals_can_be_closed(shown: Shown) -> None:
    terminals = Terminals(FakeWorker("c1"))
    show(terminals)
    terminals.close()
    terminals.close()
    (bundles,) = shown.values()
    assert len(bundles) == 2 and "[c1: running]" in bundles[-1]["text/plain"]


def test_what_another_thread_published_is_said_again_in_the_next_cell(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[Callable[[object], None]] = []

    class Events:
        register = staticmethod(lambda _, hook: hooks.append(hook))
        unregister = staticmethod(lambda _, hook: hooks.remove(hook))

    monkeypatch.setattr("kafkalab.widgets.live.get_ipython", lambda: type("Shell", (), {"events": Events}))
    terminals = Terminals(FakeWorker("c1"))
    show(terminals)
    thread = threading.Thread(target=terminals.close)
    thread.start()
    thread.join()
    (bundles,) = shown.values()
    hooks[0](None)
    assert bundles[-1] == bundles[-2] and not hooks
