"""A Python process with a `channel`, seen from the process that started it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kafkalab.cluster.backends.failure import log_tail
from kafkalab.errors import WaitTimeout
from kafkalab.exits import exit_status, signal_of
from kafkalab.waiting import wait_until

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["LOOK", "ChildProcess", "children_of"]

LOOK = 0.01  # seconds between two checks of a process that answers in milliseconds

# The newest process with each log. It may outlast the object that started it, if a notebook gives that object's name away.
_children: dict[Path, ChildProcess] = {}


class ChildProcess:
    """A process that takes commands and reports events, in lines of JSON.

    A new one first closes the cluster's earlier one of the same kind and name, so you can run its cell again. It ends with its
    cluster, and with this process. In a process that was forked from this one, it counts as ended.

    Attributes
    ----------
    name
        Its name, which is also the ``client.id`` that brokers see.
    cluster
        The cluster it works on.
    """

    _MODULE: ClassVar[str]
    _START_SECONDS = 30.0
    _START: ClassVar[str] = "the process of {} to start"
    _farewell = "closed"  # its state after a clean end

    def __init__(self, cluster: Cluster, name: str, log: Path) -> None:
        self.cluster = cluster
        self.name = name
        self._state, self._reason = "starting", ""
        self._started = False  # stays True after the end: a short task may be over before anyone looks
        self._end_is_known = False  # whether its state says how it ends
        self._ended_by_itself = False
        self._write_lock = threading.Lock()
        self._log_file = log
        if namesake := _children.get(log):
            namesake.close()
        self._process = self._spawn()
        self._reader = threading.Thread(target=self._read, name=f"{name} events", daemon=True)
        self._reader.start()
        _children[log] = self
        cluster.nodes.on_stop(self._cluster_stops)

    @property
    def alive(self) -> bool:
        """Whether its process runs. Once it's False, everything it reported has arrived."""
        return self._reader.is_alive()

    @property
    def state(self) -> str:
        """Its state while it runs, or how it ended."""
        return self._state

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def kill(self) -> None:
        """Send SIGKILL: nothing is flushed, and the group isn't told. When it returns, the process is gone."""
        self._kill("killed")

    def close(self) -> None:
        """End cleanly. When it returns, the process is gone. Does nothing if the process has already ended."""
        if self.alive and self._write({"do": "close"}):
            with contextlib.suppress(WaitTimeout):
                wait_until(lambda: not self.alive, self._close_seconds(), f"{self.name} to end", interval=LOOK)
        if self.alive:
            self._kill("killed, because it did not end by itself")

    # What subclasses fill in

    def _close_seconds(self) -> float:
        """Return the seconds after which a process that got the close command is killed."""
        return 10.0

    def _has_started(self, event: dict[str, Any]) -> None:
        """Process its report that it has started. Called in the reading thread."""
        if not self._end_is_known:
            self._state = "running"

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        """Process any other event. Called in the reading thread."""
        raise NotImplementedError

    def _has_ended(self) -> None:
        """Clean up after the process has ended. Called in the reading thread."""

    # What they use

    def _write(self, command: Mapping[str, object]) -> bool:
        """Send a command. Return whether it was sent: if not, the process has ended, and all of its events have arrived."""
        assert self._process.stdin is not None
        try:
            with self._write_lock:
                self._process.stdin.write(json.dumps(command).encode() + b"\n")
                self._process.stdin.flush()
        except (BrokenPipeError, ValueError):  # it's gone, or even its pipe is closed here
            self._reader.join()
            return False
        return True

    def _await_start(self) -> None:
        """Wait until it has started, or ended."""
        wait_until(lambda: self._started or not self.alive, self._START_SECONDS, self._START.format(self.name), interval=LOOK)

    def _note_end(self, state: str, reason: str = "") -> None:
        """Note how it ends, unless that's known."""
        if not self._end_is_known:
            self._state, self._reason, self._end_is_known = state, reason, True

    def _kill(self, state: str) -> None:
        self._state, self._end_is_known = state, True
        self._process.kill()
        self._reader.join()

    def _abandon(self, state: str) -> None:
        """Kill it if it runs, and forget it."""
        if self.alive:
            self._kill(state)
        if _children.get(self._log_file) is self:
            del _children[self._log_file]

    def _in_words(self) -> str:
        """Return its state, and why it ended, if that's known."""
        return ": ".join(filter(None, (self._state, self._reason)))

    # The process

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._log_file.parent.mkdir(exist_ok=True)
        with self._log_file.open("ab") as log:
            self._logged = log.tell()
            return subprocess.Popen(
                [sys.executable, "-P", "-m", self._MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.cluster.nodes.run.environment(),
                start_new_session=True,  # interrupting a cell doesn't reach it
            )

    def _read(self) -> None:
        assert self._process.stdout is not None and self._process.stdin is not None
        with self._process.stdout as events:
            for line in events:
                if line.endswith(b"\n"):  # else it was killed while it wrote this line
                    self._take_in(json.loads(line))
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # commands that it never read
            self._process.stdin.close()
        if not self._end_is_known:
            self._ended_by_itself = True
            self._note_end(*self._obituary())
        self._has_ended()

    def _take_in(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self._has_started(event)
                self._started = True
            case "refused":
                self._note_end("refused", event["reason"])
            case "closed":
                self._note_end(self._farewell)
            case kind:
                self._handle(kind, event)

    def _obituary(self) -> tuple[str, str]:
        """Return how it ended by itself: by which signal if by one, and the last lines of its standard error."""
        status = self._process.returncode
        words = ""
        if self._log_file.exists():
            words = log_tail(self._log_file.read_bytes()[self._logged :].decode(errors="replace").strip())
        if signal_of(status):
            return exit_status(status), words
        return "ended by itself", words or exit_status(status)

    def _cluster_stops(self) -> None:
        if self.cluster.nodes.backend == "attached":
            self.close()  # the cluster keeps running, so leave its groups cleanly
        self._abandon("ended with the cluster")


def children_of(cluster: Cluster) -> list[ChildProcess]:
    """Return the newest process of each name that this process started on a cluster."""
    return [child for child in list(_children.values()) if child.cluster is cluster]
