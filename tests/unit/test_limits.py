"""What the memory limit ended is told from what somebody killed."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from kafkalab import limits
from kafkalab.cluster.backends.processes import NodeProcess
from kafkalab.cluster.spec import Node
from kafkalab.cluster.view import BrokerView, ClusterView
from kafkalab.conditions import SHARED_MACHINE, own_loopback
from kafkalab.exits import exit_status
from kafkalab.limits import BY_LIMIT, end_first, limit_kills
from kafkalab.resources import available_memory
from kafkalab.widgets.events import events_between


def group(tmp_path: Path, below: str, file: str, kills: int) -> None:
    folder = tmp_path / "cgroup" / below
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(f"oom_kill_disable 0\noom_kill {kills}\n" if "control" in file else f"low 0\noom_kill {kills}\n")


def kills(tmp_path: Path, line: str) -> int:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text(line)
    return limit_kills(tmp_path, tmp_path / "cgroup")


def test_the_nearest_group_counts_and_not_what_its_neighbours_lost(tmp_path: Path) -> None:
    """As in a unit of systemd: the limit is the unit's, and the slice above counts for all."""
    group(tmp_path, "", "memory.events", 9)
    group(tmp_path, "system.slice", "memory.events", 7)
    group(tmp_path, "system.slice/jupyter-ada.service", "memory.events", 2)
    assert kills(tmp_path, "0::/system.slice/jupyter-ada.service\n") == 2


def test_version_1_counts_elsewhere(tmp_path: Path) -> None:
    group(tmp_path, "memory/ada", "memory.oom_control", 3)
    assert kills(tmp_path, "5:memory:/ada\n0::/\n") == 3


def test_a_container_sees_its_own_group_only(tmp_path: Path) -> None:
    group(tmp_path, "", "memory.events", 4)
    assert kills(tmp_path, "0::/machine/of/somebody/else\n") == 4


def test_where_nobody_counts_there_are_none(tmp_path: Path) -> None:
    assert kills(tmp_path, "") == 0
    assert limit_kills(tmp_path / "no proc", tmp_path / "no cgroup") == 0


@pytest.mark.parametrize(("more", "hint"), [(0, "killed from outside; out of memory?"), (1, BY_LIMIT)])
def test_a_status_names_the_limit_if_it_killed_something(monkeypatch: pytest.MonkeyPatch, more: int, hint: str) -> None:
    monkeypatch.setattr(limits, "limit_kills", lambda: limits._before + more)
    assert exit_status(-signal.SIGKILL) == f"ended by SIGKILL (9): {hint}"
    assert exit_status(-signal.SIGTERM) == "ended by SIGTERM (15): somebody told it to end"


def ended_node(monkeypatch: pytest.MonkeyPatch, sign: signal.Signals, more: int, ended_by: str = "") -> NodeProcess:
    process = NodeProcess(Node(2, broker=True, controller=True), ended_by=ended_by, limit_kills=5)
    process.child = subprocess.Popen(["sleep", "60"])
    process.child.send_signal(sign)
    process.child.wait()
    monkeypatch.setattr("kafkalab.cluster.backends.processes.limit_kills", lambda: 5 + more)
    process.note_end()
    return process


@pytest.mark.parametrize(
    ("sign", "more", "ended_by", "end"),
    [
        (signal.SIGKILL, 1, "", BY_LIMIT),
        (signal.SIGKILL, 0, "", ""),  # somebody else killed it
        (signal.SIGKILL, 1, "kill", ""),  # the learner did
        (signal.SIGTERM, 1, "", ""),  # the limit sends no other signal
    ],
)
def test_a_node_was_ended_by_the_limit_or_it_wasnt(
    monkeypatch: pytest.MonkeyPatch, sign: signal.Signals, more: int, ended_by: str, end: str
) -> None:
    process = ended_node(monkeypatch, sign, more, ended_by)
    assert process.end == end
    monkeypatch.setattr("kafkalab.cluster.backends.processes.limit_kills", lambda: 99)
    process.note_end()  # what the limit ends later says nothing about this one
    assert process.end == end


def test_the_map_says_that_the_limit_ended_a_broker() -> None:
    def view(state: str, end: str = "") -> ClusterView:
        broker = BrokerView(2, "127.0.0.1:1", None, state, controller=False, voter=True, end=end)
        return ClusterView("id", 0, 1, {2: broker}, {}, {})

    [event] = events_between(view("up"), view("dead", BY_LIMIT), 1.0)
    assert event.says == "broker 2 is dead: the memory limit ended it"
    [event] = events_between(view("up"), view("dead"), 1.0)
    assert event.says == "broker 2 is dead"


def test_a_hubs_limit_counts_where_no_control_group_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MEM_LIMIT", raising=False)
    free = available_memory(tmp_path, tmp_path)
    monkeypatch.setenv("MEM_LIMIT", str(free // 2))
    assert available_memory(tmp_path, tmp_path) < free // 2  # this process itself counts
    monkeypatch.setenv("MEM_LIMIT", "2G")  # not JupyterHub's: it writes bytes
    assert available_memory(tmp_path, tmp_path) > free // 2


def test_a_shared_machine_has_no_loopback_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARED_MACHINE, raising=False)
    assert own_loopback() is None
    monkeypatch.setenv(SHARED_MACHINE, "1")
    problem = own_loopback()
    assert problem is not None
    assert "can run programs as you" in problem.description
    assert "network namespace" in problem.remedy


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="only Linux has it")
def test_what_the_system_shall_end_first_has_a_higher_score() -> None:
    own = int(Path("/proc/self/oom_score_adj").read_text())
    with subprocess.Popen(["sleep", "60"]) as process:
        end_first(process.pid)
        assert int(Path(f"/proc/{process.pid}/oom_score_adj").read_text()) == min(1000, own + 500)
        process.kill()
    end_first(process.pid)  # which has ended
