"""Checks of what Kafka and Spark take for granted about a machine. Each finds a problem and says how to fix it.

`kafkalab doctor` shows all of them. Code that starts a process calls `require` with the conditions it depends on.
"""

from __future__ import annotations

import os
import pwd
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kafkalab.cgroups import own_cgroups
from kafkalab.errors import UnsuitableMachine
from kafkalab.paths import cache_dir, runs_dir

__all__ = [
    "CONDITIONS",
    "SHARED_MACHINE",
    "Condition",
    "Problem",
    "cache_executable",
    "clock",
    "home",
    "localhost",
    "open_files",
    "own_loopback",
    "processes",
    "require",
    "runs_executable",
    "system_files",
    "user_name",
]

SHARED_MACHINE = "KAFKALAB_SHARED_MACHINE"
"""Names the variable that says: this machine has other users, and they share one network with this one."""

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")

_OPEN_FILES = 256
_THREADS_OF_A_BROKER = 90
_THREADS = 400  # of three brokers, and a Spark session, which has some 100
_YEARS = (2025, 2100)  # the first is that of the oldest Kafka that the course downloads


@dataclass(frozen=True)
class Problem:
    """A problem and its remedy, half a sentence each."""

    description: str
    remedy: str


Condition = Callable[[], Problem | None]


def require(*conditions: Condition) -> None:
    """Raise `UnsuitableMachine` for the first condition that doesn't hold."""
    for condition in conditions:
        if problem := condition():
            raise UnsuitableMachine(f"{problem.description}. To fix it: {problem.remedy}")


def user_name() -> Problem | None:
    """Spark and PostgreSQL ask the system for the user's name."""
    user = os.getuid()
    try:
        pwd.getpwuid(user)
    except KeyError:
        line = f"learner:x:{user}:{os.getgid()}::/tmp:/bin/sh"
        return Problem(
            f"this process runs as user {user}, who has no name: /etc/passwd has no line for that number, "
            "and Spark and PostgreSQL need one",
            f"run as a user who has a name, or let root add one: echo '{line}' >> /etc/passwd",
        )
    return None


def own_loopback() -> Problem | None:
    """Whoever reaches a Connect worker can run programs as its owner, and all users of a machine share 127.0.0.1.

    Whoever runs a shared machine sets ``KAFKALAB_SHARED_MACHINE``; see ``hub/README.md``.
    """
    if os.environ.get(SHARED_MACHINE) in (None, "", "0"):
        return None
    return Problem(
        "other users of this machine reach your ports, and whoever reaches a Connect worker can run programs as you "
        f"({SHARED_MACHINE} is set)",
        "work on a machine of your own, or ask whoever runs this one for a network namespace for each user",
    )


def home() -> Problem | None:
    """Downloads and settings are kept in the home folder."""
    if os.path.isabs(os.path.expanduser("~")):
        return None
    return Problem("nothing says where your home folder is: HOME isn't set to a full path", "export HOME=/a/folder/of/yours")


def localhost() -> Problem | None:
    """Jupyter, Spark and the labs connect to ``localhost``, where brokers listen on 127.0.0.1."""
    remedy = "add this line to /etc/hosts: 127.0.0.1 localhost"
    try:
        addresses = {str(address[0]) for *_, address in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
    except OSError as error:
        return Problem(f"the name localhost has no address on this machine ({error.strerror or error})", remedy)
    if not any(address.startswith("127.") for address in addresses):
        return Problem(f"localhost is {', '.join(sorted(addresses))} here, and brokers listen on 127.0.0.1", remedy)
    return None


def runs_executable() -> Problem | None:
    """Kafka's compression libraries are unpacked among the brokers' data, and loaded from there."""
    if not _is_noexec(runs_dir()):
        return None
    return Problem(
        f"{runs_dir()} is on a file system mounted with noexec: Kafka can't load its libraries for zstd and snappy there",
        "export TMPDIR=/another/folder, on a file system without noexec, and start again",
    )


def cache_executable() -> Problem | None:
    """Kafka's command-line tools are scripts in the cache."""
    if not _is_noexec(cache_dir()):
        return None
    return Problem(
        f"the cache, {cache_dir()}, is on a file system mounted with noexec: Kafka's command-line tools can't run there",
        "export KAFKALAB_CACHE=/another/folder, on a file system without noexec, and start again",
    )


def _is_noexec(folder: Path) -> bool:
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return bool(os.statvfs(existing).f_flag & getattr(os, "ST_NOEXEC", 0))


def open_files() -> Problem | None:
    """Each broker opens some hundred files and connections. Java raises the soft limit to the hard one by itself."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= _OPEN_FILES:
        return None
    description = f"a process may open only {limit} files here, and a broker needs {_OPEN_FILES}"
    return Problem(description, "let root raise it: ulimit -Hn 4096")


def processes(brokers: int | None = None) -> Problem | None:
    """Each broker has about 90 threads, which count as processes. Without a number, check for three brokers and Spark."""
    needed, programs = (
        (_THREADS, "three brokers and Spark") if brokers is None else (_THREADS_OF_A_BROKER * brokers, "this cluster")
    )
    available, why = min([*_available_to_user(), *_available_in_cgroups()], default=(needed, ""))
    if available >= needed:
        return None
    return Problem(
        f"only {max(available, 0)} more processes and threads may start here ({why}), and {programs} needs {needed}",
        "end other programs, or raise that limit",
    )


def _available_to_user() -> Iterator[tuple[int, str]]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft == resource.RLIM_INFINITY or os.geteuid() == 0:  # root may start as many as it likes
        return
    import psutil

    used = 0
    for process in psutil.process_iter():
        try:
            used += process.num_threads() if process.uids().real == os.getuid() else 0
        except psutil.Error:  # ended meanwhile, or somebody else's
            continue
    yield soft - used, f"ulimit -u is {soft}"


def _available_in_cgroups() -> Iterator[tuple[int, str]]:
    for folder in own_cgroups("pids", _PROC, _CGROUPS):
        try:
            limit, used = (folder / "pids.max").read_text().strip(), int((folder / "pids.current").read_text())
            if limit != "max":
                yield int(limit) - used, f"{folder / 'pids.max'} is {limit}"
        except (OSError, ValueError):
            continue


def system_files() -> Problem | None:
    """The reaper finds an owner's processes in /proc."""
    if sys.platform != "linux" or (_PROC / "self" / "stat").exists():
        return None
    return Problem("/proc isn't mounted, so nobody can tell which processes run", "let root mount it: mount -t proc proc /proc")


def clock() -> Problem | None:
    """Certificates, retention and the labs depend on the clock."""
    now = time.time()
    if _YEARS[0] <= time.gmtime(now).tm_year < _YEARS[1]:
        return None
    date = datetime.fromtimestamp(now, UTC).date()
    return Problem(f"this machine's clock says that today is {date}: no certificate is valid then", "set the clock")


CONDITIONS: dict[str, tuple[Condition, ...]] = {
    "User and home folder": (user_name, home),
    "localhost": (localhost, own_loopback),
    "Programs in temporary folders": (runs_executable, cache_executable),
    "Limits of the system": (open_files, processes),
    "System": (system_files, clock),
}
"""All conditions, by the line of `kafkalab doctor` that shows them."""
