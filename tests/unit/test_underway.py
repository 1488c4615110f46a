"""No wait is silent: what makes a reader wait is noted, and the panel shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalab import underway
from kafkalab.distribution import announce, made_by_one
from kafkalab.errors import KafkaLabError
from kafkalab.services.base import RestartableServer
from kafkalab.underway import Task, Underway
from kafkalab.waiting import wait_until
from kafkalab.widgets import panel as panel_module
from kafkalab.widgets.live import Live
from kafkalab.widgets.underway_lines import UnderwayLines
from support import PATIENCE
from virtual_clock import VirtualClock
from widget_support import html


@pytest.fixture
def followed() -> Iterator[list[tuple[str, ...]]]:
    """What goes on in this process after each change, as a follower sees it."""
    seen: list[tuple[str, ...]] = []
    underway.now.follow(lambda: seen.append(tuple(map(str, underway.now.tasks))))
    yield seen
    underway.now.follow(None)


def test_a_task_is_seen_until_its_block_ends_however_it_ends(followed: list[tuple[str, ...]]) -> None:
    with pytest.raises(ZeroDivisionError), underway.task("Starting the brokers") as progress:
        progress(2, 3)
        1 / 0  # noqa: B018
    assert followed == [("Starting the brokers",), ("Starting the brokers: 2 of 3",), ()]


def test_sizes_are_in_megabytes_and_a_single_step_has_no_number() -> None:
    assert str(Task("downloading x.jar", 40_200_000, 159_000_000)) == "downloading x.jar: 40 of 159 MB"
    assert str(Task("pulling the image x", 0, 1)) == "pulling the image x"


def test_a_download_is_shown_where_somebody_follows_and_printed_where_nobody_does(
    followed: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path))
    for _ in range(2):
        with underway.task("Starting the schema registry"), made_by_one(tmp_path / "jars/x", "the schema registry"):
            announce("downloading x.tgz", 40_000_000, 159_000_000)
        underway.now.follow(None)
    line = "downloading x.tgz: 40 of 159 MB"
    assert ("Starting the schema registry", line) in followed
    assert capfd.readouterr().err == f"{line}\n"


def test_a_line_that_belongs_to_nothing_is_printed(followed: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str]) -> None:
    announce("pulling the image x", 0, 1)
    assert capfd.readouterr().err == "pulling the image x\n"


def test_a_cell_that_waits_says_for_what_unless_it_is_part_of_something(followed: list[tuple[str, ...]]) -> None:
    looks = iter([False, True, False, True, True])
    wait_until(lambda: next(looks), PATIENCE, "a new leader", interval=0)
    with underway.task("Starting the brokers"):
        wait_until(lambda: next(looks), PATIENCE, "all brokers to be registered", interval=0)
    wait_until(lambda: next(looks), PATIENCE, "what is there")
    assert followed == [("Waiting for a new leader",), (), ("Starting the brokers",), ()]


def test_a_service_says_that_it_starts_and_that_it_starts_again(followed: list[tuple[str, ...]]) -> None:
    class Fake(RestartableServer):
        _KIND, _NOUN, _WHO, _FAILURE = "fake", "fake", "the fake", KafkaLabError
        running = False

        def _opened(self) -> None:
            pass

        def _begin(self) -> None:
            pass

        def _required(self) -> object:
            return type("Server", (), {"end": lambda self: None})()

        _make_server = _launch = _is_ready = None

    Fake().start().restart()
    assert followed == [("Starting the fake",), (), ("Restarting the fake",), ()]


class TestLines:
    """What the panel shows of it."""

    def test_nothing_that_takes_less_than_a_second_is_shown(self) -> None:
        clock, tasks = VirtualClock(threads=1), Underway()
        lines = UnderwayLines(tasks, clock)
        with tasks.task("Starting the brokers"):
            clock.advance(0.9)
            assert html(lines.widget) == ""
        assert html(lines.widget) == ""

    def test_what_takes_longer_is_shown_with_its_progress_and_seconds_until_it_ends(self) -> None:
        clock, tasks = VirtualClock(threads=1), Underway()
        lines = UnderwayLines(tasks, clock)
        with tasks.task("Starting the <brokers>") as progress:
            assert clock.seconds_until(lambda: html(lines.widget)) == 1
            assert "Starting the &lt;brokers&gt;" in html(lines.widget)
            progress(2, 3)
            assert "2 of 3" in html(
                lines.widget
            ) and '<progress max="3" value="2" aria-label="Starting the &lt;brokers&gt;">' in html(lines.widget)
            assert clock.seconds_until(lambda: "2 s so far" in html(lines.widget)) == 1
        assert html(lines.widget) == ""

    def test_each_task_has_a_line_that_begins_like_a_sentence(self) -> None:
        clock, tasks = VirtualClock(threads=1), Underway()
        lines = UnderwayLines(tasks, clock)
        with tasks.task("Starting Spark"), tasks.task("Preparing the jars of spark"):
            tasks.report("downloading x.jar", 1, 2)
            clock.advance(1)
            wait_until(lambda: "Downloading x.jar: 1 of 2" in html(lines.widget), PATIENCE, "the lines")
            assert html(lines.widget).index("Starting Spark") < html(lines.widget).index("Downloading")


@pytest.mark.usefixtures("registers")
def test_the_panel_shows_what_this_process_is_busy_with(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tasks = VirtualClock(threads=1), Underway()
    monkeypatch.setattr(underway, "now", tasks)
    monkeypatch.setattr(Live, "beside", None)
    monkeypatch.setattr(panel_module, "Clock", lambda: clock)
    panel = panel_module._panel.__wrapped__()
    with tasks.task("Starting Spark"):
        assert clock.seconds_until(lambda: "Starting Spark" in html(panel.widget)) == 1
    assert "Starting Spark" not in html(panel.widget)
