"""The lab card looks after each cell, if that was chosen."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ipywidgets
import pytest
from IPython.core.events import EventManager, available_events

from kafkalab import running
from kafkalab.checks import CheckContext, Lab, Unmet, check, evaluate
from kafkalab.checks.lab import find_lab
from kafkalab.course.own_labs import OwnLabs
from kafkalab.preferences import checks_as_you_go, choose_checks_as_you_go
from kafkalab.progress import ProgressRecord, load
from kafkalab.running import Register
from kafkalab.waiting import wait_until
from kafkalab.widgets import LabCard, lab_card
from kafkalab.widgets.after_cells import AfterCells
from support import PATIENCE
from widget_support import FakeCluster, find, html, press


class Shell:
    """An IPython that runs cells which do nothing."""

    def __init__(self, **variables: object) -> None:
        self.user_ns: dict[str, Any] = variables
        self.events = EventManager(self, available_events)

    def begin_cell(self) -> None:
        self.events.trigger("pre_run_cell", None)

    def end_cell(self) -> None:
        self.events.trigger("post_run_cell", None)

    def run_cell(self) -> None:
        self.begin_cell()
        self.end_cell()

    def has_callbacks(self) -> bool:
        return any(self.events.callbacks.values())


def at_rest() -> bool:
    return not any(thread.name == "kafkalab-after-cell" for thread in threading.enumerate())


def wait_for_rest() -> None:
    wait_until(at_rest, PATIENCE, "what follows a cell to end")


# -- after each cell --------------------------------------------------------------------------------------------------


def test_cells_in_a_row_never_look_twice_at_once_and_the_last_one_is_looked_at() -> None:
    shell, go_on, at_once, most, looks = Shell(), threading.Event(), [], [0], []

    def look(interrupted: Callable[[], bool]) -> None:
        at_once.append(None)
        most[0] = max(most[0], len(at_once))
        looks.append(None)
        assert go_on.wait(PATIENCE)
        at_once.pop()

    AfterCells(shell, look)
    shell.run_cell()
    wait_until(lambda: looks, PATIENCE, "the first look")
    for _ in range(4):
        shell.run_cell()
    go_on.set()
    wait_for_rest()
    assert most == [1] and len(looks) == 2


def test_a_look_is_told_when_a_cell_begins_and_none_begins_while_it_runs() -> None:
    shell, told, looks = Shell(), threading.Event(), []

    def look(interrupted: Callable[[], bool]) -> None:
        looks.append(None)
        wait_until(lambda: interrupted() or told.is_set(), PATIENCE, "a cell to begin")

    AfterCells(shell, look)
    shell.run_cell()
    wait_until(lambda: looks, PATIENCE, "the first look")
    shell.begin_cell()
    wait_for_rest()
    assert len(looks) == 1
    told.set()
    shell.end_cell()
    wait_for_rest()
    assert len(looks) == 2


def test_after_the_end_nothing_is_left_in_the_shell() -> None:
    shell, looks = Shell(), []
    after = AfterCells(shell, lambda _: looks.append(None))
    after.stop()
    shell.run_cell()
    assert at_rest() and not looks and not shell.has_callbacks()


# -- the card ---------------------------------------------------------------------------------------------------------


@dataclass
class Probed:
    """What the checks of the lab see, and in which threads they looked."""

    topic: bool = False
    looked: list[str] = field(default_factory=list)
    waits_for: threading.Event | None = None
    shell: Shell = field(default_factory=Shell)


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch, progress_folder: Path, cluster: FakeCluster) -> Probed:
    """A lab in a notebook with a running cluster."""
    lab, state = Lab("09_games"), Probed()
    first = lab.add_check("09_topic", "Make a topic", hints=("Think.",))

    @first.requires("There is a topic")
    def topic(ctx: CheckContext) -> None:
        state.looked.append(threading.current_thread().name)
        if state.waits_for:
            assert state.waits_for.wait(PATIENCE)
        if not state.topic:
            raise Unmet("There's no topic `games`.")

    @first.requires("Your function counts it", after=topic)
    def counts(ctx: CheckContext) -> None:
        assert ctx.function("count", "your function")() == 1

    facts = SimpleNamespace(difficulty="easy", minutes=20, needs="nothing", seconds=None)
    content = SimpleNamespace(
        lab_facts=lambda _: facts, lab_stems=lambda: ["09_games"], chapter_of=lambda _: "09_chapter", own=OwnLabs()
    )
    course = SimpleNamespace(content=content, checks_module=lambda _: "gamescourse.games")
    for user in ("kafkalab.course", "kafkalab.checks.lab"):
        monkeypatch.setattr(f"{user}.find_course", lambda: course)
    monkeypatch.setitem(sys.modules, "gamescourse.games", SimpleNamespace(lab=lab))
    callbacks: list[object] = []
    register: Register[FakeCluster] = Register()
    for module in ("kafkalab.checks.learner", "kafkalab.widgets.lab_card"):
        monkeypatch.setattr(f"{module}.on_report", callbacks)
    monkeypatch.setattr(LabCard, "_newest", {})
    for module in ("running", "widgets.lab_card"):
        monkeypatch.setattr(f"kafkalab.{module}.clusters", register)
    lab_card._follow_clusters.cache_clear()
    state.shell.user_ns |= {"cluster": cluster, "count": lambda: pytest.fail("the learner's function was called")}
    monkeypatch.setattr("kafkalab.widgets.lab_card.get_ipython", lambda: state.shell)
    return state


def choose(card: LabCard, chosen: bool = True) -> None:
    find(card, ipywidgets.Checkbox).value = chosen


def test_it_is_off_until_somebody_chooses_it(probed: Probed) -> None:
    card = LabCard("09_games")
    assert not find(card, ipywidgets.Checkbox).value
    probed.shell.run_cell()
    assert at_rest() and not probed.looked and not probed.shell.has_callbacks()


def test_the_card_follows_each_cell_and_records_nothing(probed: Probed) -> None:
    card = LabCard("09_games")
    choose(card)
    probed.shell.run_cell()
    wait_for_rest()
    assert "There&#x27;s no topic <code>games</code>." in html(card)
    probed.topic = True
    probed.shell.run_cell()
    wait_for_rest()
    shown = html(card)
    # Its function isn't called without being asked, so that requirement waits.
    assert "✗" not in shown and "1 of 2 met" in shown and "What's left calls your code. Press Check." in shown
    assert set(probed.looked) == {"kafkalab-after-cell"}
    assert load() == ProgressRecord() and "Lab passed" not in shown


def test_a_check_replaces_what_was_found_after_a_cell(
    probed: Probed, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    card = LabCard("09_games")
    choose(card)
    probed.shell.run_cell()
    wait_for_rest()
    probed.topic = True
    check("09_topic", cluster, count=lambda: 1)
    assert "Lab passed" in html(card) and load().labs["09_topic"].passed
    probed.topic = False
    probed.shell.run_cell()
    wait_for_rest()
    assert "Lab passed" in html(card) and "✗" not in html(card)  # what has passed isn't looked at again


def test_a_cell_or_a_check_ends_the_look_at_the_next_requirement(probed: Probed) -> None:
    probed.topic, probed.waits_for = True, threading.Event()
    card = LabCard("09_games")
    choose(card)
    before = html(card)
    probed.shell.run_cell()
    wait_until(lambda: probed.looked, PATIENCE, "the first requirement to be looked at")
    probed.shell.begin_cell()
    probed.waits_for.set()
    wait_for_rest()
    assert html(card) == before
    probed.waits_for.clear()
    probed.shell.end_cell()
    wait_until(lambda: len(probed.looked) == 2, PATIENCE, "it to be looked at again")
    probed.shell.user_ns["count"] = lambda: 1
    press(card, "Check")
    assert probed.looked == ["kafkalab-after-cell"] * 2  # one after the other
    probed.waits_for.set()
    wait_until(lambda: "Lab passed" in html(card), PATIENCE, "the check to pass", last_seen=lambda: html(card))
    assert load().labs["09_topic"].checks == 1
    wait_for_rest()


def test_without_a_running_cluster_it_looks_at_nothing(probed: Probed, cluster: FakeCluster) -> None:
    running.clusters.announce(cluster, cluster.on_stop)
    card = LabCard("09_games")
    choose(card)
    cluster.stop()
    probed.shell.run_cell()
    wait_for_rest()
    del probed.shell.user_ns["cluster"]
    probed.shell.run_cell()
    wait_for_rest()
    assert not probed.looked and "no cluster yet" not in html(card)


def test_what_fails_in_the_check_itself_is_left_to_a_check(probed: Probed, monkeypatch: pytest.MonkeyPatch) -> None:
    card = LabCard("09_games")
    choose(card)
    before = html(card)
    monkeypatch.setattr(probed, "looked", None)  # the probe can't append to it
    probed.shell.run_cell()
    wait_for_rest()
    assert html(card) == before


def test_the_choice_is_kept_and_can_be_taken_back(probed: Probed) -> None:
    choose(LabCard("09_games"))
    again = LabCard("09_games")
    assert find(again, ipywidgets.Checkbox).value and checks_as_you_go()
    choose(again, False)
    assert not checks_as_you_go()
    choose_checks_as_you_go(False)  # twice is no mistake


def test_a_choice_that_cannot_be_kept_holds_for_this_card(probed: Probed, progress_folder: Path) -> None:
    progress_folder.write_text("a file")
    card = LabCard("09_games")
    choose(card)
    assert "This choice holds here only: File exists" in html(card)
    probed.shell.run_cell()
    wait_for_rest()
    assert probed.looked


def test_it_ends_with_the_card(probed: Probed) -> None:
    card = LabCard("09_games")
    choose(card)
    card._finish()
    card._finish()
    assert not probed.shell.has_callbacks()


def test_a_check_that_is_asked_for_calls_the_learners_code(probed: Probed, cluster: FakeCluster) -> None:
    probed.topic = True
    asked = find_lab("09_games").checks[0]
    ctx = CheckContext(cluster, {"count": lambda: 1})
    assert evaluate(asked, ctx)
    ctx.may_call = False
    assert [result.state for result in evaluate(asked, ctx).results] == ["met", "waiting"]
