"""A Java program beside a cluster: a process of a run, with a log."""

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
    """A Java program that can be started more than once. All its starts write to the same log.

    Parameters
    ----------
    run
        The run that it belongs to. Its files are in the run's folder.
    name
        Name of its log: ``<name>.log``.
    """

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._files = run.directory / f"{name}.log", run.directory / f"{name}-output.log"
        self._logged: dict[Path, int] = {}  # bytes of its logs that stem from earlier lives
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self, heap: str, classes: str, main: str, arguments: Sequence[str], environment: Mapping[str, str] = {}) -> None:
        """Start the process, without waiting until the program is ready.

        Parameters
        ----------
        heap
            Java heap, as in ``-Xmx``.
        classes
            A class path. If it begins with that of brokers and tools, Java can use their class-data archive.
        main, arguments
            The main class, and its arguments.
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
        """Its process id, even after it ended. None before the first start."""
        return None if self._process is None else self._process.pid

    def logs(self) -> str:
        """Return its log since its first start."""
        return "".join(self._logs_after({}).values())

    def ended(self, who: str) -> str:
        """Return the message for its end: who ended, by which signal or why, and the last lines of its log."""
        status = None if self._process is None else self._process.poll()
        return self.last_words(ended(who, status, self._logs_after(self._logged)))

    def last_words(self, *said: object) -> str:
        """Return a message about it: these words, and the last lines that it has logged since its last start."""
        return f"{'; '.join(map(str, said))}\nIts last lines:\n{log_tail(''.join(self._logs_after(self._logged).values()))}"

    def kill(self) -> None:
        """Kill it with SIGKILL. On return, the process is gone. Its log stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """Send SIGTERM, and SIGKILL after 20 s. On return, the process is gone. Its log stays."""
        if self._process is not None and self.alive:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_TIMEOUT)
            self.kill()

    def _logs_after(self, starts: Mapping[Path, int]) -> dict[str, str]:
        """Return the contents of its log files from these positions on, by file name."""
        held = {path.name: path.read_bytes()[starts.get(path, 0) :] for path in self._files if path.exists()}
        return {name: text.decode(errors="replace") for name, text in held.items()}
