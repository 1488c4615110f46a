"""The time that counts: cells of the course's notebooks, told by Jupyter's server."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from IPython.core.events import EventManager

from kafkalab import progress
from kafkalab.widgets.time_spent import TimeSpent, count_time
from virtual_clock import VirtualClock

CELL_ENDS = "post_run_cell"


@pytest.fixture
def shell(progress_folder: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A notebook's IPython."""
    made = SimpleNamespace()
    made.events = EventManager(made, {CELL_ENDS: lambda result: None})
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: made)
    return made


@pytest.mark.parametrize(
    ("notebook", "counts"),
    [
        ("/home/me/kafka/notebooks/02_cluster_failover.ipynb", {"02"}),
        ("labs/11_spark_pipeline/11_upsert.ipynb", {"11"}),
        ("/home/me/Untitled.ipynb", set()),
        (None, set()),
    ],
)
def test_a_cell_counts_for_the_chapter_of_its_notebook(
    notebook: str | None, counts: set[str], shell: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if notebook:
        monkeypatch.setenv("JPY_SESSION_NAME", notebook)
    count_time()
    assert not progress.load().times  # opening a notebook is no work
    shell.events.trigger(CELL_ENDS, None)
    assert set(progress.load().times) == counts


def test_a_process_without_a_notebook_counts_nothing(progress_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "notebooks/02_cluster_failover.ipynb")  # as a notebook's own processes have it
    count_time()
    assert not progress.load().times


def test_cells_that_follow_each_other_closely_are_written_down_once(
    shell: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr("kafkalab.widgets.time_spent.record_cell", written.append)
    clock = VirtualClock(0)
    TimeSpent(shell, "02", clock)
    for at in (0, 1, 29, 30, 59, 61):
        clock._now = at
        shell.events.trigger(CELL_ENDS, None)
    assert written == ["02"] * 3
