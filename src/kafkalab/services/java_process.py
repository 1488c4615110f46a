"""A Java program beside a cluster, as a process of a run, with its log and its last words."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.conditions import require, runs_executable
from kafkalab.distribution import JVM_OPTIONS, NODE_LOG_SETTINGS, archive_options, java_command
from kafkalab.lifeline import Run

__all__ = ["JavaProcess"]

_STOP_TIMEOUT = 20.0


class JavaProcess:
    """One program that may be started again and again; its log holds all its lives.

    Parameters
    ----------
    run
        It belongs to it, and has its files in the run's folder.
    name
        Of its log: ``<name>.log``.
    """

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._files = run.directory / f"{name}.log", run.directory / f"{name}-output.log"
        self._logged: dict[Path, int] = {}  # bytes of its logs that stem from earlier lives
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self, heap: str, classes: str, main: str, arguments: Sequence[str], environment: Mapping[str, str] = {}) -> None:
        """Start it; on return the process is there, and not more.

        Parameters
        ----------
        heap
            Java heap, as in ``-Xmx``.
        classes
            A class path. One that begins with that of brokers and tools has use of their class-data archive.
        main, arguments
            The class that is run, and what it's told.
        environment
            Variables beside those of the run.
        """
        require(runs_executable)
        log, output = self._files
        for path in self._files:  # they may hold a password
            path.touch(mode=0o600)
            self._logged[path] = path.stat().st_size
        with output.open("ab") as stream:
            self._process = subprocess.Popen(
                [str(java_command()), f"-Xmx{heap}", *JVM_OPTIONS, *archive_options(),
                 f"-Djava.io.tmpdir={self._run.directory}",  # native libraries are unpacked there, and go with it
                 f"-Dlog4j2.configurationFile={NODE_LOG_SETTINGS}", f"-Dkafkalab.log={log}",
                 "-cp", classes, main, *arguments],
                stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                env={**self._run.environment(), **environment}, start_new_session=True, cwd=self._run.directory,
            )  # fmt: skip

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Its process id, also after it ended; None before it was started."""
        return None if self._process is None else self._process.pid

    def logs(self) -> str:
        """Return its log so far, of all its lives."""
        return "".join(self._logs_after({}).values())

    def ended(self, who: str) -> str:
        """What a message says of it when it has ended: who ended, by which signal or why, and its last lines."""
        status = None if self._process is None else self._process.poll()
        return self.last_words(ended(who, status, self._logs_after(self._logged)))

    def last_words(self, *said: object) -> str:
        """What a message about it says: first this, then the last lines of its present life."""
        return f"{'; '.join(map(str, said))}\nIts last lines:\n{log_tail(''.join(self._logs_after(self._logged).values()))}"

    def kill(self) -> None:
        """SIGKILL. On return the process is gone; its log stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """SIGTERM, and SIGKILL after 20 s. On return the process is gone; its log stays."""
        if self._process is not None and self.alive:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_TIMEOUT)
            self.kill()

    def _logs_after(self, starts: Mapping[Path, int]) -> dict[str, str]:
        """What its logs hold from these bytes on, by the name of the file."""
        held = {path.name: path.read_bytes()[starts.get(path, 0) :] for path in self._files if path.exists()}
        return {name: text.decode(errors="replace") for name, text in held.items()}
