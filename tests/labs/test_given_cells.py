"""Cells that a chapter or a lab gives you: what they do when something fails, and in which order they come."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import nbformat
import pytest

from kafkalab import wait_until
from kafkalab.errors import ConnectFailed

ROOT = Path(__file__).parents[2]
SOON = 30  # seconds; the cells themselves would wait for 120


def code_of(notebook: str) -> list[str]:
    return [cell.source for cell in nbformat.read(ROOT / notebook, as_version=4).cells if cell.cell_type == "code"]


def defined(notebook: str, *functions: str, **names: object) -> dict[str, Any]:
    """Names after the cells that define these functions have run, among those given."""
    for source in code_of(notebook):
        if any(f"def {function}(" in source for function in functions):
            exec(source, names)
    return names


def test_everything_runs_again_if_an_outage_fails() -> None:
    said = Mock()
    said.connect.wait_until.side_effect = ConnectFailed("the task of trucks has failed")
    found = {"names": ["trucks"], "topics": ["truck_position"], "reached": 1, "handed_over": 0}
    functions = {name: Mock(return_value=value) for name, value in found.items()}
    actors = {name: getattr(said, name) for name in ("cluster", "connect", "drive", "mqtt", "settle", "worker")}
    lab = "solutions/09_connect/09_mqtt.ipynb"
    outage = defined(lab, "drive_until", "outage", rest=Mock(), **functions, **actors)["outage"]
    with pytest.raises(ConnectFailed, match="the task of trucks has failed"):
        outage()
    calls = [name for name, *_ in said.mock_calls]
    assert calls == ["cluster.pause", "drive", "connect.wait_until", "cluster.resume", "mqtt.start", "worker.start"]


FOUR = SimpleNamespace(state="Stable", members=[*range(4)])


@pytest.mark.parametrize("when", ["before all are members", "at work", "after the last job"])
@pytest.mark.parametrize(
    ("notebook", "arguments"),
    [("solutions/12_kafka_4/12_share_groups.ipynb", ("jobs", "jobs")), ("notebooks/12_kafka_4.ipynb", ("jobs",))],
    ids=["lab", "chapter"],
)
def test_the_error_of_a_worker_ends_the_wait_for_it(notebook: str, arguments: tuple[str, ...], when: str) -> None:
    done: list[dict[str, object]] = []

    def worker(group: str, name: str, ending: threading.Event) -> None:
        if name != "worker-2" or when == "after the last job":
            ending.wait(SOON)
        if name == "worker-2":
            raise ValueError("not a job")

    def send(topic: str, values: list[str]) -> list[int]:
        if when == "after the last job":
            done.extend({"group": topic, "job": value, "offset": offset} for offset, value in enumerate(values))
        return [*range(len(values))]

    imports = {"threading": threading, "Event": threading.Event, "ThreadPoolExecutor": ThreadPoolExecutor}
    names = defined(notebook, "fine", "wait_for_work", "run_four", done=done, send=send, wait_until=wait_until, **imports)
    began = time.monotonic()
    with pytest.raises(ValueError, match="not a job"):
        names["run_four"](worker, *arguments, lambda: None if when == "before all are members" else FOUR)
    assert time.monotonic() - began < SOON


@pytest.mark.parametrize(
    ("notebook", "check"),
    [("12_rolling_upgrade", "12_upgrade_brokers"), ("12_dynamic_quorum", "12_majority_back")],
)
def test_what_you_may_still_change_is_checked_while_the_producer_writes(notebook: str, check: str) -> None:
    cells = code_of(f"solutions/12_kafka_4/{notebook}.ipynb")
    [checked] = [number for number, source in enumerate(cells) if f'check("{check}"' in source]
    [stopped] = [number for number, source in enumerate(cells) if "ledger.stop()" in source]
    assert checked < stopped
