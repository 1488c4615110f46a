"""What the course takes for granted about a machine."""

from __future__ import annotations

import os
import pwd
import resource
import socket
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalab import conditions
from kafkalab.cgroups import own_cgroups
from kafkalab.cli import findings, main
from kafkalab.conditions import CONDITIONS, require
from kafkalab.distribution.shared import cache_folder
from kafkalab.errors import UnsuitableMachine
from kafkalab.lifeline import Run
from kafkalab.resources import available_memory

MB = 1 << 20


def refuse(error: Exception) -> Any:
    def raising(*_: object, **__: object) -> None:
        raise error

    return raising


def test_the_first_problem_is_raised_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", refuse(KeyError()))
    with pytest.raises(UnsuitableMachine, match=rf"user {os.getuid()}, who has no name.*To fix it: .*/etc/passwd"):
        require(conditions.clock, conditions.user_name)


def test_doctor_shows_all_problems_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", refuse(KeyError()))
    monkeypatch.delenv("HOME", raising=False)
    finding = findings.machine("User and home folder")
    assert finding.state == "missing" and "no name" in finding.result and "HOME isn't set" in finding.result
    assert "export HOME=" in finding.remedy


def test_every_condition_is_one_of_doctors(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {condition.__name__ for group in CONDITIONS.values() for condition in group}
    assert shown == {name for name in conditions.__all__ if name.islower() and name != "require"}


def test_no_localhost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", refuse(socket.gaierror(-2, "Name or service not known")))
    problem = conditions.localhost()
    assert problem and "Name or service not known" in problem.description and "127.0.0.1 localhost" in problem.remedy


def test_a_localhost_of_version_6_only(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    problem = conditions.localhost()
    assert problem and "localhost is ::1 here" in problem.description


@pytest.mark.parametrize("condition", ["runs_executable", "cache_executable"])
def test_a_folder_where_nothing_may_be_executed(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC | os.ST_RDONLY))
    problem = getattr(conditions, condition)()
    assert problem and "noexec" in problem.description and "export " in problem.remedy


@pytest.mark.parametrize(("year", "right"), [(1970, False), (2024, False), (2026, True), (2120, False)])
def test_a_clock_that_is_far_off(year: int, right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: (year - 1970) * 365.25 * 86400 + 86400)
    assert (conditions.clock() is None) == right


def test_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    problem = conditions.open_files()
    assert problem and "only 64 files" in problem.description
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 4096))  # Java raises it by itself
    assert conditions.open_files() is None


def test_few_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 10))
    problem = conditions.processes()
    assert problem and "ulimit -u is 10" in problem.description


def test_few_processes_in_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = cgroup(tmp_path, "4:pids:/a/b", "pids/a/b")
    (group / "pids.max").write_text("100\n")
    (group / "pids.current").write_text("90\n")
    monkeypatch.setattr(conditions, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(conditions, "_CGROUPS", tmp_path / "cgroup")
    problem = conditions.processes()
    assert problem and "only 10 more" in problem.description and "pids.max is 100" in problem.description


def test_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "_PROC", tmp_path)
    with pytest.raises(UnsuitableMachine, match="/proc isn't mounted"):
        Run.create("test")


def test_no_room_for_runs_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(UnsuitableMachine, match="nothing can be started on this machine: No such file or directory"):
        Run.create("test")


@pytest.mark.parametrize("code", ["EROFS", "EACCES", "ENOSPC", "EDQUOT", "EMFILE", "EAGAIN"])
def test_what_a_system_refuses_a_command_is_a_sentence(
    code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import errno

    error = OSError(getattr(errno, code), "refused", "/some/file")
    monkeypatch.setattr("kafkalab.cli.doctor.find_all", refuse(error))
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err.startswith("kafkalab: refused: /some/file. ")


# -- memory -----------------------------------------------------------------------------------------------------------


def cgroup(root: Path, line: str, *folders: str) -> Path:
    (root / "proc" / "self").mkdir(parents=True, exist_ok=True)
    with open(root / "proc" / "self" / "cgroup", "a") as file:
        file.write(line + "\n")
    for folder in folders:
        (root / "cgroup" / folder).mkdir(parents=True, exist_ok=True)
    return root / "cgroup" / folders[-1]


def limit(folder: Path, megabytes: int | str, used: int, cache: int = 0, *, version: int = 2) -> None:
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    text = megabytes if isinstance(megabytes, str) else str(megabytes * MB)
    (folder / names[0]).write_text(f"{text}\n")
    (folder / names[1]).write_text(f"{used * MB}\n")
    (folder / "memory.stat").write_text(f"{'total_' * (version == 1)}inactive_file {cache * MB}\n")


def free(root: Path) -> int:
    return available_memory(root / "proc", root / "cgroup") // MB


def test_the_nearest_limit_counts_wherever_it_is(tmp_path: Path) -> None:
    own = cgroup(tmp_path, "0::/user.slice/session", "user.slice/session")
    limit(own, "max", 10)
    limit(own.parent, 450, 100, 20)
    assert free(tmp_path) == 370
    limit(own, 300, 10)
    assert free(tmp_path) == 290


def test_limits_of_version_1(tmp_path: Path) -> None:
    own = cgroup(tmp_path, "4:cpu,memory:/a/b", "memory/a/b")
    limit(own, 9 << 43, 10, version=1)  # version 1 has a huge number for no limit
    limit(own.parent.parent, 400, 100, version=1)
    assert free(tmp_path) == 300


def test_a_container_that_sees_its_own_group_at_the_top(tmp_path: Path) -> None:
    top = cgroup(tmp_path, "0::/docker/0123456789", ".")
    limit(top, 200, 50)
    assert free(tmp_path) == 150


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    assert free(tmp_path) > 0
    assert list(own_cgroups("memory", tmp_path, tmp_path / "absent")) == []


def test_a_group_that_is_full(tmp_path: Path) -> None:
    limit(cgroup(tmp_path, "0::/a", "a"), 100, 120)
    assert free(tmp_path) == -20


def test_without_a_home_no_folder_is_made_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", refuse(KeyError()))
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("KAFKALAB_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsuitableMachine, match="HOME isn't set"):
        cache_folder("jars")
    assert list(tmp_path.iterdir()) == []


def test_a_check_of_doctors_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def memory() -> findings.Finding:
        """Check the memory."""
        raise FileNotFoundError("/proc/meminfo")

    monkeypatch.setattr(findings, "CHECKS", (memory, partial(memory)))
    for finding in findings.find_all():
        assert finding.state == "missing" and "Check the memory. /proc/meminfo" in finding.result
