"""Server programs that can end and start again with their data: what processes and containers share, and the process."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.ports import reserve_port
from kafkalab.errors import KafkaLabError, WaitTimeout
from kafkalab.lifeline import Run
from kafkalab.limits import end_first
from kafkalab.waiting import wait_until

__all__ = ["Server", "ServerProcess", "kill_all"]

_END_SECONDS = 20.0


class Server(ABC):
    """A server program. All its starts write to the same log.

    Parameters
    ----------
    who
        Its name in messages, such as ``the MQTT broker``.
    failure
        The error that says why it ended.
    ports
        Ports on this machine, held until `destroy`, so that it gets them again after a crash. With 0, any free one.

    Raises
    ------
    PortInUse
        If one of them is taken.
    """

    _END_SIGNAL = signal.SIGTERM

    def __init__(self, who: str, failure: type[KafkaLabError], ports: Sequence[int] = ()) -> None:
        self._who, self._failure = who, failure
        self._logged: dict[str, int] = {}  # length of each log at the last start
        self._reservations = [reserve_port(port) for port in ports]

    @property
    def ports(self) -> list[int]:
        """Its ports."""
        return [reservation.port for reservation in self._reservations]

    @property
    def port(self) -> int:
        """The first of its ports."""
        return self.ports[0]

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it runs."""

    @property
    @abstractmethod
    def status(self) -> int | None:
        """Its exit status. None before its first start, and while it runs."""

    @abstractmethod
    def _kill(self) -> None:
        """Send SIGKILL to all its processes, if it runs, and wait until they're gone."""

    @abstractmethod
    def _signal(self, sign: signal.Signals) -> None: ...

    @abstractmethod
    def _read_logs(self) -> dict[str, str]:
        """Return what it has logged since its first start, by the name of the file."""

    def prepare(self) -> None:  # noqa: B027 - most servers need nothing
        """Make what it needs before its first start."""

    def kill(self) -> None:
        """Kill all its processes with SIGKILL, as a crash would. On return, they're gone. Its log stays.

        Raises
        ------
        KafkaLabError
            If it doesn't run: the error of its kind.
        """
        if not self.alive:
            raise self._failure(f"{self._who} can't be killed: it doesn't run")
        self._kill()

    def end(self) -> None:
        """Shut it down cleanly, and kill it after 20 s. On return, it has ended. Its log stays."""
        if self.alive:
            self._signal(self._END_SIGNAL)
            with contextlib.suppress(WaitTimeout):
                wait_until(lambda: not self.alive, _END_SECONDS, f"{self._who} to end")
            self._kill()

    def destroy(self) -> None:
        """Kill it, and release its ports."""
        self._kill()
        for reservation in self._reservations:
            reservation.close()

    def await_ready(
        self,
        is_ready: Callable[[], object],
        seconds: float,
        not_yet: tuple[type[Exception], ...] = (OSError,),
        observed: Callable[[], object] = lambda: "it runs",
    ) -> None:
        """Wait until it's ready.

        Parameters
        ----------
        is_ready
            Whether it is. Until then it may raise an error of those in `not_yet`.
        observed
            What the message of a timeout shows, besides the last lines of its log.

        Raises
        ------
        KafkaLabError
            If it ends before that, as for `require_alive`.
        WaitTimeout
            If it runs, but isn't ready in time.
        """

        def alive_and_ready() -> object:
            self.require_alive()
            return is_ready()

        wait_until(
            alive_and_ready, seconds, f"{self._who} to be ready", last_seen=lambda: self.last_words(observed()), ignore=not_yet
        )

    def require_alive(self) -> None:
        """Raise its error, with its obituary, if it has ended."""
        if not self.alive:
            raise self._failure(self.obituary())

    def logs(self) -> str:
        """Return its log since its first start."""
        return "".join(self._read_logs().values())

    def obituary(self) -> str:
        """Return the message for its end: by which signal or why, and the last lines of its log."""
        return self.last_words(ended(self._who, self.status, self._logs_since_start()))

    def last_words(self, words: object) -> str:
        """Return a message about it: these words, and the last lines that it has logged since its last start."""
        return f"{words}\nIts last lines:\n{log_tail(''.join(self._logs_since_start().values()))}"

    def _note_start(self) -> None:
        self._logged = {name: len(text) for name, text in self._read_logs().items()}

    def _logs_since_start(self) -> dict[str, str]:
        return {name: text[self._logged.get(name, 0) :] for name, text in self._read_logs().items()}


class ServerProcess(Server):
    """A server as a process of a run. When it's killed, the processes that it has started are killed, too.

    Parameters
    ----------
    run
        The run that it belongs to.
    name
        Name of its log: ``<name>.log``.
    folder
        The folder for its files, and its working directory. By default the run's.
    """

    def __init__(
        self,
        run: Run,
        name: str,
        who: str,
        failure: type[KafkaLabError],
        *,
        ports: Sequence[int] = (),
        folder: Path | None = None,
    ) -> None:
        super().__init__(who, failure, ports)
        self._run = run
        self.folder = folder or run.directory
        self._files: tuple[Path, ...] = (self.folder / f"{name}.log",)  # the last one is its output
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, command: Sequence[str], environment: Mapping[str, str] = {}, *, umask: int = -1) -> None:
        """Start its process, without waiting until it answers.

        Parameters
        ----------
        environment
            Variables besides those of the run.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._note_start()
        for path in self._files:
            path.touch(mode=0o600)  # it may hold a password
        with self._files[-1].open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, umask=umask,
                env={**self._run.environment(), **environment}, start_new_session=True, cwd=self.folder,
            )  # fmt: skip
        end_first(self._process.pid)

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status, as `subprocess.Popen.returncode` has it."""
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int | None:
        """Its process id, even after it ended. None before its first start."""
        return None if self._process is None else self._process.pid

    def memory(self) -> int:
        """Return its resident memory, in bytes."""
        return int(psutil.Process(self.pid).memory_info().rss)

    def children(self) -> list[psutil.Process]:
        """Return the processes that it has started, and those that these have started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            if self.alive:
                return list(psutil.Process(self.pid).children(recursive=True))
        return []

    def _kill(self) -> None:
        children = self.children()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        kill_all(children)

    def _signal(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sign)

    def _read_logs(self) -> dict[str, str]:
        return {path.name: path.read_text(errors="replace") for path in self._files if path.exists()}


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """Send SIGKILL to processes. On return, they're gone."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, _END_SECONDS)
