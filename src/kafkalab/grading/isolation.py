"""Close a submission off from the machine: by namespaces, by a container, or only as a process group of its own."""

from __future__ import annotations

import functools
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import kafkalab
from kafkalab.course import find_course
from kafkalab.distribution import java_home
from kafkalab.environment import LOCALE
from kafkalab.errors import BackendUnavailable
from kafkalab.grading.enclosure import ROOM, Specification
from kafkalab.grading.limits import Limits
from kafkalab.lifeline import RUN_LABEL, RUN_VARIABLE, Run
from kafkalab.paths import cache_dir

__all__ = ["Isolation", "Kind", "choose", "container", "describe", "namespaces", "process_group"]

Kind = Literal["namespaces", "container", "process group"]

_NOBODY = 65534
_PROBE_SECONDS = 60
_IN_A_CONTAINER = Path("/tmp")  # the worker's folder: nothing else is in it
_OWN_PROGRAMS = "kafkalab-own-programs"  # an image with nothing in it: the programs are this machine's, read-only
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt")
_TRIAL = "import subprocess, sys; subprocess.run([sys.executable, '-P', '-c', 'import kafkalab'], check=True)"
_WORKER = ("-P", "-m", "kafkalab.grading.worker")


@dataclass(frozen=True)
class Isolation:
    """A way to run a worker.

    Attributes
    ----------
    kind
        What keeps it apart.
    image
        The image of its container.
    hidden
        Folders that it must not see, such as the one with all submissions.
    """

    kind: Kind
    image: str = ""
    hidden: tuple[Path, ...] = ()

    def hiding(self, *folders: Path) -> Isolation:
        """Return the same, which hides these folders, too. A mere process group hides nothing."""
        return replace(self, hidden=(*self.hidden, *folders))

    def command(self, run: Run, limits: Limits) -> list[str]:
        """Return the command that runs the worker of a run within these limits."""
        if self.kind == "container":
            return _docker(self, run, limits)
        if self.kind == "namespaces":
            return _unshare(self.hidden, limits, [sys.executable, *_WORKER])
        limit = f'ulimit -c 0 -f {limits.file_bytes // _ULIMIT_UNIT}; exec "$@"'
        return ["bash", "-c", limit, "bash", sys.executable, *_WORKER]

    def environment(self, run: Run) -> dict[str, str]:
        """Return the environment of `command`. Of the marker's own it has paths only; a container's worker gets no more."""
        if self.kind == "container":  # Docker's command line needs the marker's, and `_docker` says what the worker gets
            return {**os.environ, RUN_VARIABLE: run.id}
        room = Path(ROOM) if self.kind == "namespaces" else run.directory
        return {**_variables(room), RUN_VARIABLE: run.id}


_ULIMIT_UNIT = 1024  # bytes: bash counts files in it


def choose(*, in_container: bool, image: str = "") -> Isolation:
    """Return the best isolation of this machine, or a container if that's asked for.

    Raises
    ------
    BackendUnavailable
        If there's no Docker engine, or it lacks the image.
    """
    if in_container:
        return container(image)
    return namespaces() if why_no_namespaces() is None else process_group()


def namespaces() -> Isolation:
    """Return isolation by Linux's namespaces."""
    return Isolation("namespaces")


def process_group() -> Isolation:
    """Return what every machine has: a session, folders and limits of its own."""
    return Isolation("process group")


def container(image: str = "") -> Isolation:
    """Return isolation by a container of an image that has the course, or of one without any, with this machine's programs.

    Raises
    ------
    BackendUnavailable
        If there's no Docker engine, or it lacks the image.
    """
    from docker.client import from_env  # takes half a second
    from docker.errors import DockerException, ImageNotFound

    if shutil.which("docker") is None:
        raise BackendUnavailable("containers need Docker's command line, and there is no `docker` on this machine's PATH")
    try:
        client = from_env()
    except DockerException as error:
        raise BackendUnavailable(
            f"no Docker engine answers on this machine ({error}). Start it, or grade without --container"
        ) from error
    try:
        if image:
            client.images.get(image)
        else:
            client.api.import_image_from_data(_almost_nothing(), repository=_OWN_PROGRAMS, tag="latest")
    except ImageNotFound:
        raise BackendUnavailable(f"the Docker engine has no image {image!r}. Pull or build it first") from None
    finally:
        client.close()
    return Isolation("container", image or _OWN_PROGRAMS)


def _almost_nothing() -> bytes:
    """Return an image's files: a folder, since what is mounted on it gets its mode, whatever ``--tmpfs`` says (runc)."""
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as archive:
        folder = tarfile.TarInfo(_IN_A_CONTAINER.name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)
    return files.getvalue()


@functools.cache
def why_no_namespaces() -> str | None:
    """Return why this machine can't close a process off by namespaces, or None if it can."""
    if sys.platform != "linux":
        return "only Linux has them"
    if missing := [tool for tool in ("unshare", "setpriv") if shutil.which(tool) is None]:
        return f"there is no `{missing[0]}` here: install util-linux"
    command = _unshare((), Limits(1), [sys.executable, "-P", "-c", _TRIAL])
    try:
        tried = subprocess.run(
            command, env=dict(_variables(Path(ROOM))), capture_output=True, text=True, timeout=_PROBE_SECONDS
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"a trial didn't end within {_PROBE_SECONDS} s"
    return None if tried.returncode == 0 else (tried.stderr.strip() or "a trial failed").splitlines()[-1]


def describe() -> str:
    """Return, for ``--help``, what keeps a submission apart on this machine, and what doesn't."""
    if (reason := why_no_namespaces()) is None:
        user = "the user nobody" if os.geteuid() == 0 else "your user, without any privilege"
        return f"""\
On this machine each submission has namespaces of its own: no network but its own loopback, no process but its own, the
files of the machine read-only, your home folder and the submissions hidden, and {user}. Memory and tasks
are looked at every half second, so a submission may exceed them for a moment."""
    return f"""\
On this machine a submission is only a process group of its own ({reason}).
Its time, memory, disk and tasks are limited and all its processes end with it. But it runs as you: IT CAN REACH THE
NETWORK AND READ AND CHANGE YOUR FILES. Use --container, or Linux with util-linux, for people you don't trust."""


def _variables(room: Path) -> Mapping[str, str]:
    passed = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "KAFKALAB_COURSE", "KAFKALAB_JAVA_HOME") if name in os.environ
    }
    return {
        **passed,
        **LOCALE,
        "HOME": str(room / "home"),
        "TMPDIR": str(room / "tmp"),
        "IPYTHONDIR": str(room / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(room / "sockets"),
        "KAFKALAB_PROGRESS": str(room / "progress"),
        "KAFKALAB_CACHE": str(cache_dir().resolve()),
        "KAFKALAB_BACKEND": "local",
    }


def _unshare(hidden: Sequence[Path], limits: Limits, command: list[str]) -> list[str]:
    as_root = os.geteuid() == 0
    kept = _kept()
    closed = _closed(kept) if as_root else []
    folders = (Path.home(), Path("/run"), Path("/var/tmp"), *(folder.resolve() for folder in hidden), *closed)
    specification = Specification(
        hidden=[str(path) for path in folders],
        kept=kept,
        disk_bytes=limits.disk_bytes,
        file_bytes=limits.file_bytes,
        tasks=limits.tasks,
        user=_NOBODY if as_root else None,
        command=command,
    )
    own_user = [] if as_root else ["--user", "--map-current-user", "--keep-caps"]
    return [
        "unshare", *own_user, "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--",
        sys.executable, "-P", "-m", "kafkalab.grading.enclosure", specification.as_text(),
    ]  # fmt: skip


def _kept() -> list[str]:
    """Return the files that the course needs to run, without those that the system has for everybody."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(kafkalab.__file__).parent, find_course().content.root, cache_dir()}
    folders |= {java_home(), *(Path(place) for place in sys.path if place)}
    visible = {*folders, *(folder.resolve() for folder in folders)} - {Path.home(), Path("/"), Path("/tmp")}
    return sorted(str(path) for path in visible if path.exists())


def _closed(kept: Sequence[str]) -> list[Path]:
    """Return the folders above kept files that nobody can enter but its owner. Hidden, each is open, with those files only."""
    above = {folder for path in kept for folder in Path(path).parents}
    return [folder for folder in above if not folder.stat().st_mode & stat.S_IXOTH]


def _docker(isolation: Isolation, run: Run, limits: Limits) -> list[str]:
    user = os.geteuid() or _NOBODY
    variables = _variables(_IN_A_CONTAINER)
    if isolation.image == _OWN_PROGRAMS:
        places = [*(folder for folder in _SYSTEM if os.path.exists(folder)), *_kept()]
        volumes = [word for place in places for word in ("-v", f"{os.path.realpath(place)}:{place}:ro")]
        python = sys.executable
    else:
        volumes, python = [], "python"
        variables = {
            name: value for name, value in variables.items() if not name.startswith(("PATH", "PYTHONPATH", "KAFKALAB_CACHE"))
        }
    return [
        "docker", "run", "--interactive", "--name", run.id, "--label", f"{RUN_LABEL}={run.id}", "--pull", "never",
        # Without a network nobody knows the name of a container. Java asks for it, and complains on standard output.
        "--network", "none", "--hostname", "localhost", "--user", f"{user}:{user}",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--read-only", "--tmpfs", f"{_IN_A_CONTAINER}:rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes}",
        "--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes),
        "--pids-limit", str(limits.tasks), "--ulimit", f"fsize={limits.file_bytes}", "--ulimit", "core=0",
        *volumes, *(word for name, value in variables.items() for word in ("-e", f"{name}={value}")),
        "--workdir", str(_IN_A_CONTAINER), isolation.image, python, "-P", "-m", "kafkalab.grading.worker",
    ]  # fmt: skip
