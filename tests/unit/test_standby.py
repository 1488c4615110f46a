"""A cluster on standby is waited for, taken once, and ended when another one needs its memory."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kafkalab.cluster import standby
from kafkalab.cluster.backends.local import LocalBackend
from kafkalab.cluster.spec import ClusterSpec
from kafkalab.lifeline import Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The run of a standby cluster of this process, which is starting."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(LocalBackend, "read_state", lambda self: None)
    run = Run.create("standby")
    (run.directory / "starting").touch()
    return run


def offer(run: Run) -> None:
    (run.directory / "starting").rename(run.directory / f"offered-by-{os.getpid()}")


def memory(monkeypatch: pytest.MonkeyPatch, available: int) -> None:
    monkeypatch.setattr(standby, "available_memory", lambda: available)


@pytest.mark.parametrize(("available", "ends"), [(1_000_000_000, True), (8_000_000_000, False)])
def test_it_ends_for_a_cluster_of_another_spec_only_if_memory_is_scarce(
    available: int, ends: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory(monkeypatch, available)
    offer(run)
    assert standby.take(ClusterSpec(brokers=1), "local") is None
    assert run.directory.exists() is not ends


def test_one_that_is_starting_is_waited_for(run: Run) -> None:
    looked = threading.Event()
    is_starting = standby._starting

    def starting() -> set[str]:
        found = is_starting()
        looked.set()
        return found

    def offer_when_looked_at() -> None:
        looked.wait()
        offer(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standby, "_starting", starting)
        other = threading.Thread(target=offer_when_looked_at)
        other.start()
        taken = standby.take(ClusterSpec(), "local")
        other.join()
    assert taken is not None and taken.run.id == run.id
    assert standby.take(ClusterSpec(), "local") is None


def test_what_a_crash_left_behind_is_not_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "abandoned_runs", lambda: iter([run]))
    monkeypatch.setattr(standby, "_START_SECONDS", 0)
    assert standby._starting() == set()
    assert standby.take(ClusterSpec(), "local") is None
