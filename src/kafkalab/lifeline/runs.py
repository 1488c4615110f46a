"""Runs: what kafkalab has started, each with a folder, a mark and an owner."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from kafkalab.conditions import home, require, system_files
from kafkalab.environment import inherited
from kafkalab.errors import BackendUnavailable, KafkaLabError, UnsuitableMachine, WaitTimeout
from kafkalab.paths import runs_dir
from kafkalab.waiting import wait_until

__all__ = ["RUN_LABEL", "RUN_VARIABLE", "Run", "abandoned_runs", "claimed_runs", "marked_processes", "reap"]

RUN_VARIABLE = "KAFKALAB_RUN"
RUN_LABEL = "kafkalab.run"

_REMOVAL_SECONDS = 5.0

_reaper_lock = threading.Lock()
_reaper_of: int | None = None  # the pid for which this process started a reaper; a fork needs one of its own


@dataclass(frozen=True)
class Run:
    """One thing that kafkalab has started. Its folder, mark and label follow from its id.

    Attributes
    ----------
    id
        Unique on this machine.
    """

    id: str

    @classmethod
    def create(cls, kind: str) -> Run:
        """Create the folder of a new run, and claim the run for this process.

        When this returns, the run's folder exists (mode 0700) and a reaper watches this process.

        Raises
        ------
        KafkaLabError
            If the folder of all runs can't be written or isn't private (it's another user's, or others can write in it), or
            processes can't be listed on this machine.
        """
        require(system_files, home)
        run = cls(f"{kind}-{uuid.uuid4().hex[:10]}")
        try:
            _require_private_base()
            _claim_file(_owner_token(os.getpid()), run.id).touch()  # first the claim: an orphan folder would have no owner
            run.directory.mkdir(mode=0o700)
            _ensure_reaper()
        except OSError as error:  # no folder for temporary files, a full disk, no more processes
            raise UnsuitableMachine(
                f"nothing can be started on this machine: {error.strerror or error} ({error.filename or runs_dir()}). "
                "Is there room for files and processes? TMPDIR can name another folder"
            ) from error
        return run

    @property
    def directory(self) -> Path:
        """The run's folder: data, logs and state live here and are removed with the run."""
        return runs_dir() / self.id

    def environment(self) -> dict[str, str]:
        """Return the environment for a process of this run: inherited variables, plus the run's mark."""
        return inherited() | {RUN_VARIABLE: self.id}

    def uses_docker(self) -> None:
        """Note that this run has containers, networks or volumes, so that `reap` asks the same Docker engine for them."""
        (self.directory / "docker").write_text(os.environ.get("DOCKER_HOST", ""))

    def is_mine(self) -> bool:
        """Return whether this process owns the run. False once another process has taken it over."""
        return _claim_file(_owner_token(os.getpid()), self.id).exists()

    def take_over(self, owner_pid: int) -> bool:
        """Claim a run that another process owns.

        Parameters
        ----------
        owner_pid
            The process that owns the run now.

        Returns
        -------
        bool
            True if this process now owns the run. False if it was gone or taken already.
        """
        _require_private_base()
        try:
            mine = _claim_file(_owner_token(os.getpid()), self.id)
            os.rename(_claim_file(_owner_token(owner_pid), self.id), mine)
        except (FileNotFoundError, psutil.NoSuchProcess):
            return False
        _ensure_reaper()
        return True


def _require_private_base() -> None:
    """Create the folder of all runs. If it exists, check that it's this user's, and that only this user can write to it."""
    base = runs_dir()
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        problem = "it is not a folder of yours"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "others can write in it"
    else:
        base.chmod(0o700)
        return
    raise KafkaLabError(
        f"{base} cannot hold the brokers' data and passwords: {problem}. Remove it, or name another folder with TMPDIR."
    )


def started(pid: int) -> int:
    """Return when a process started, as a number that no other process with its pid has.

    The number stays the same while the process lives. On Linux it counts from the machine's start. A time of day, such as
    psutil's ``create_time``, changes when the clock is set, as after a laptop's sleep (proc_pid_stat(5), field 22).

    Raises
    ------
    psutil.NoSuchProcess
        If there is no such process.
    """
    if sys.platform != "linux":
        return int(psutil.Process(pid).create_time() * 1000)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(pid) from None
    return int(fields.rpartition(")")[2].split()[19])  # its name, in brackets, may hold anything


def _owner_token(pid: int) -> str:
    # Pids are reused. Together with the start time, a pid is unique.
    return f"{pid}-{started(pid)}"


def _claim_file(token: str, run_id: str) -> Path:
    owner = runs_dir() / "owners" / token
    owner.mkdir(mode=0o700, parents=True, exist_ok=True)
    return owner / run_id


def _ensure_reaper() -> None:
    global _reaper_of
    with _reaper_lock:
        if _reaper_of == os.getpid():
            return
        token = _owner_token(os.getpid())
        reaper = subprocess.Popen(
            [sys.executable, "-P", "-m", "kafkalab.lifeline.reaper", str(os.getpid()), token],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # neither a cell's interrupt nor a closed terminal reaches it
            # This process may belong to a run itself. Its reaper must survive when that run is reaped.
            env={name: value for name, value in inherited().items() if name != RUN_VARIABLE},
            cwd="/",
        )
        reaper.returncode = 0  # nobody waits for it, and Python isn't to warn that it's still running
        _reaper_of = os.getpid()


def marked_processes(run_id: str) -> list[psutil.Process]:
    """Return the processes that carry the mark of a run."""
    processes = []
    for process in psutil.process_iter():
        try:
            if _is_marked(process, run_id):
                processes.append(process)
        except (psutil.Error, OSError):
            continue  # ended meanwhile, or another user's
    return processes


def _is_marked(process: psutil.Process, run_id: str) -> bool:
    with contextlib.suppress(psutil.AccessDenied):
        if environment := process.environ():
            return bool(environment.get(RUN_VARIABLE) == run_id)
    # Without the environment, look for the folder in the command. A container's root can't read the environment of
    # processes that it started as another user, and macOS hides that of its own programs.
    return any(str(Run(run_id).directory) in word for word in process.cmdline())


def reap(run: Run) -> None:
    """Kill every process of a run, and remove its containers, its folder and its claims. Safe to call again.

    On return, none of its processes is alive. Its folder is gone, unless the system refuses to remove it.

    Raises
    ------
    BackendUnavailable
        If it may have containers, and their Docker engine doesn't answer. Its processes are gone then, but its folder and
        claims are kept.
    """
    while processes := [p for p in marked_processes(run.id) if p.pid != os.getpid()]:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=5)
    if (run.directory / "docker").exists():
        _remove_containers(run)
    with contextlib.suppress(WaitTimeout):
        wait_until(lambda: _is_removed(run.directory), _REMOVAL_SECONDS, f"{run.directory} to be gone")
    for owner in runs_dir().glob("owners/*"):  # not owners/*/ID: an owner's folder may vanish meanwhile
        (owner / run.id).unlink(missing_ok=True)


def _is_removed(folder: Path) -> bool:
    """Remove a folder, and return whether it's gone. A killed process's children may still write there for a moment."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _remove_containers(run: Run) -> None:
    from docker.errors import DockerException  # only where the run used it: the import costs half a second
    from requests import RequestException

    try:
        _remove_containers_now(run)
    except (DockerException, RequestException):
        raise BackendUnavailable(
            f"the containers of {run.id} cannot be removed, for no Docker engine answers: start it, and clean again. "
            f"(Is there none any more? Then delete {run.directory}/docker first.)"
        ) from None


def _remove_containers_now(run: Run) -> None:
    from docker.client import DockerClient, from_env
    from docker.errors import APIError

    # The file holds the engine's address, if it isn't the default.
    address = (run.directory / "docker").read_text()
    label = {"label": f"{RUN_LABEL}={run.id}"}
    with contextlib.closing(DockerClient(base_url=address) if address else from_env()) as client:
        # Repeat until none is left: a launch in progress may still create one.
        while containers := [*client.containers.list(all=True, filters=label, ignore_removed=True)]:
            for container in containers:
                with contextlib.suppress(APIError):  # gone meanwhile, or being removed
                    container.remove(force=True, v=True)
        for network in client.networks.list(filters=label):
            with contextlib.suppress(APIError):
                network.remove()
        for volume in client.volumes.list(filters=label):
            with contextlib.suppress(APIError):
                volume.remove()


def claimed_runs() -> list[str]:
    """Return the ids of all claimed runs, sorted."""
    return sorted(run for owner in runs_dir().glob("owners/*") for run in _claims(owner))


def _claims(owner: Path) -> list[str]:
    try:
        return [claim.name for claim in owner.iterdir()]
    except FileNotFoundError:  # its reaper has just removed it
        return []


def abandoned_runs() -> Iterator[Run]:
    """Yield the runs whose owner is gone. A crash left them behind before a reaper could act."""
    for owner in runs_dir().glob("owners/*"):
        pid = int(owner.name.split("-")[0])
        try:
            alive = _owner_token(pid) == owner.name
        except psutil.NoSuchProcess:
            alive = False
        if not alive:
            yield from map(Run, _claims(owner))
            with contextlib.suppress(OSError):  # gone, or still with claims in it
                owner.rmdir()
