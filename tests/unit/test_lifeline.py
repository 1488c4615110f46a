"""The folder of all runs is nobody else's."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from requests import ReadTimeout

from kafkalab.errors import BackendUnavailable, KafkaLabError
from kafkalab.lifeline import Owner, Run, abandoned_runs, claimed_runs, marked_processes, reap, reaper, started
from kafkalab.paths import runs_dir


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_folder_in_which_others_can_write_is_refused() -> None:
    runs_dir().mkdir()
    runs_dir().chmod(0o777)
    with pytest.raises(KafkaLabError, match=r"others can write in it.*TMPDIR"):
        Run.create("test")
    with pytest.raises(KafkaLabError, match="others can write in it"):
        Run("standby-1").take_over(os.getpid())
    assert not list(runs_dir().iterdir())


def test_a_folder_of_somebody_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    runs_dir().mkdir(mode=0o700)
    with pytest.raises(KafkaLabError, match="it is not a folder of yours"):
        Run.create("test")


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    runs_dir().symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KafkaLabError, match="it is not a folder of yours"):
        Run.create("test")


def test_a_folder_that_others_can_only_read_is_closed() -> None:
    runs_dir().mkdir()
    runs_dir().chmod(0o755)
    run = Run.create("test")
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (runs_dir(), run.directory)} == {0o700}
    reap(run)


def test_on_macos_the_reaper_is_told_of_an_end_that_no_parent_has_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    class Queue:
        def control(self, changes: list[object], events: int) -> None:
            asked.append((changes, events))

        def close(self) -> None:
            asked.append("closed")

    constants = {"KQ_FILTER_PROC": "process", "KQ_EV_ADD": "add", "KQ_NOTE_EXIT": "exit"}
    macos = SimpleNamespace(kqueue=Queue, kevent=lambda *event: event, **constants)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(reaper, "select", macos)
    reaper._wait_for_end(17)
    assert asked == [([(17, "process", "add", "exit")], 1), "closed"]


def test_the_reaper_sees_the_end_of_a_process_that_nobody_waited_for() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    reaper._wait_for_end(ended.pid)
    ended.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere psutil says when a process started")
def test_an_owner_is_known_after_the_clock_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    run, me = Run.create("test"), started(os.getpid())
    created = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: created(process) + 3600)
    assert started(os.getpid()) == me and run.is_mine() and not list(abandoned_runs())
    reap(run)
    with pytest.raises(psutil.NoSuchProcess):
        started(2**22)  # one more than the highest that there can be


def test_an_engine_that_fails_amid_its_work_keeps_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create("test")
    (run.directory / "docker").touch()

    def fail(*_: object, **__: object) -> None:
        raise ReadTimeout("the engine is busy")

    monkeypatch.setattr("docker.client.from_env", lambda: SimpleNamespace(containers=SimpleNamespace(list=fail), close=int))
    with pytest.raises(BackendUnavailable, match="cannot be removed"):
        reap(run)
    assert run.id in claimed_runs()
    (run.directory / "docker").unlink()
    reap(run)
    assert run.id not in claimed_runs()


def test_a_forked_process_is_not_the_owner() -> None:
    owner = Owner()
    assert owner.is_me
    if (child := os.fork()) == 0:
        os._exit(owner.is_me)
    assert os.waitpid(child, 0)[1] == 0


def hidden_from_root() -> dict[str, str]:
    raise psutil.AccessDenied


@pytest.mark.parametrize("environment", [hidden_from_root, dict], ids=["of another user", "of macOS"])
def test_a_process_whose_environment_is_hidden_is_found_by_its_folder(
    environment: Callable[[], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run("postgresql-1")

    class Closed:
        def __init__(self, *command: str) -> None:
            self.command = command

        def environ(self) -> dict[str, str]:
            return environment()

        def cmdline(self) -> list[str]:
            return [*self.command]

    its, other = Closed("postgres", "-D", str(run.directory / "data")), Closed("postgres", "-D", "/var/lib/data")
    monkeypatch.setattr("psutil.process_iter", lambda: [its, other])
    assert marked_processes(run.id) == [its]
