"""The parent's side of every worker: its process, its lines and its end."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from kafkalab.errors import ClusterNotRunning, WaitTimeout, WorkerClosed, WorkerFailed
from kafkalab.exits import exit_status, signal_of
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.waiting import wait_until
from kafkalab.workers.settings import CLIENT, combine
from kafkalab.workers.topics import require_topic

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["Worker"]

_log = logging.getLogger(__name__)

_START_TIMEOUT = 30.0
_CLOSE_TIMEOUT = 10.0
_LOOK = 0.01  # seconds between two checks of a process that answers in milliseconds

_numbers: dict[str, itertools.count[int]] = {}
_named: weakref.WeakValueDictionary[tuple[str, str], Worker] = weakref.WeakValueDictionary()


class Worker:
    """A producer or consumer in a process of its own.

    When the constructor returns, the process has started and librdkafka has accepted its settings. A new worker first
    closes the cluster's earlier worker of the same `name`, so you can run its cell again. Every worker ends with its
    cluster, and with this process.

    Attributes
    ----------
    name
        Its name, which is also the ``client.id`` that brokers see.
    cluster, topic
        The cluster and topic it works on.
    settings
        The librdkafka settings that you passed, with dots in their names and without defaults.
    """

    _kind: ClassVar[str]
    _module: ClassVar[str]
    _farewell = "closed"

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        name: str | None,
        partitions: tuple[int, ...] = (),
        defaults: Mapping[str, object],
        settings: Mapping[str, object],
        start: Mapping[str, object],
    ) -> None:
        if not cluster.nodes.running:
            raise ClusterNotRunning(f"a {self._kind} needs a running cluster: this one was not started, or is stopped")
        self.cluster = cluster
        self.topic = topic
        self.name = name or f"{self._kind}-{next(_numbers.setdefault(self._kind, itertools.count(1)))}"
        self.settings = combine(settings)
        self._settings = combine({"client.id": self.name}, CLIENT, defaults, cluster.client_config(), self.settings)
        self._lines: list[str] = []
        self._callbacks: list[Callable[[str], object]] = []
        self._state = "starting"
        self._started = False  # stays True after the end: a short task may be over before anyone looks
        self._unbidden = False  # whether nobody here ended it
        self._refusal: str | None = None
        self._write_lock = threading.Lock()
        if namesake := _named.get((cluster.nodes.run.id, self.name)):
            namesake.close()
        if name is None:
            end_nameless()
        self._log_file = cluster.nodes.run.directory / "workers" / f"{self.name.replace('/', '_')}.log"
        self._process = self._spawn()
        self._reader = threading.Thread(target=self._read, name=f"{self.name} events", daemon=True)
        self._reader.start()
        try:
            # Meanwhile the child imports its modules. It must not touch a missing topic, or brokers create it.
            require_topic(cluster, topic, partitions)
            self._send({"config": self._settings, "topic": topic, **start})
            self._await_start()
        except BaseException:  # an interrupt, too: nothing half started stays behind
            self._end("not started")
            raise
        _named[cluster.nodes.run.id, self.name] = self
        cluster.nodes.on_stop(self._cluster_stops)
        if name is None:
            note_started(self, self._kind, lambda: self.alive, self.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} on {self.topic}: {self._state}>"

    @property
    def lines(self) -> list[str]:
        """The lines a terminal would show, so far."""
        return list(self._lines)

    def on_line(self, callback: Callable[[str], object]) -> None:
        """Call `callback` with each new line, in order, from another thread."""
        self._callbacks.append(callback)

    @property
    def alive(self) -> bool:
        """Whether its process runs. Once it's False, everything it reported has arrived."""
        return self._reader.is_alive()

    @property
    def state(self) -> str:
        """``running``, or how it ended."""
        return self._state

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def kill(self) -> None:
        """Send SIGKILL: nothing is flushed, and the group isn't told. When it returns, the process is gone."""
        self._require_alive("kill")
        self._end("killed")

    def close(self) -> None:
        """End cleanly. When it returns, the process is gone. Does nothing if the process has already ended."""
        if not self.alive:
            return
        try:
            self._send({"do": "close"})
            wait_until(lambda: not self.alive, self._close_timeout(), f"{self.name} to end", interval=_LOOK)
        except WaitTimeout:
            self._end("killed, because it did not end by itself")
        except WorkerClosed:
            pass  # it ended meanwhile

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What subclasses fill in or use

    def _close_timeout(self) -> float:
        """Return the seconds after which a process that got the close command is killed."""
        return _CLOSE_TIMEOUT

    def _ended(self) -> None:
        """Clean up after the process has ended. Called in the reading thread."""

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        """Process an event of the child. Called in the reading thread."""
        raise NotImplementedError

    def _say(self, *lines: str) -> None:
        self._lines += lines
        for callback in list(self._callbacks):
            for line in lines:
                try:
                    callback(line)
                except Exception:  # an error in a widget must not silence the worker
                    _log.exception("a callback for the lines of %s failed", self.name)

    def _send(self, command: Mapping[str, object]) -> None:
        data = json.dumps(command).encode() + b"\n"
        pipe = self._process.stdin
        assert pipe is not None
        try:
            with self._write_lock:
                pipe.write(data)
                pipe.flush()
        except (BrokenPipeError, ValueError):  # the child is gone, or even its pipe is closed here
            self._reader.join()
            self._require_alive("use")

    def _require_alive(self, verb: str) -> None:
        if self.alive:
            return
        if self._unbidden:
            raise WorkerFailed(self._last_words())
        raise WorkerClosed(f"cannot {verb} {self.name}: {self._state}; make a new {self._kind}")

    # The process

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._log_file.parent.mkdir(exist_ok=True)
        with open(self._log_file, "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.cluster.nodes.run.environment(),
                start_new_session=True,  # interrupting a cell doesn't reach it
            )

    def _await_start(self) -> None:
        wait_until(
            lambda: self._started or not self.alive,
            _START_TIMEOUT,
            f"the process of {self.name} to start",
            interval=_LOOK,
        )
        if self._refusal is not None:
            raise WorkerFailed(f"{self.name} does not start with these settings: {self._refusal}")
        if not self._started:
            raise WorkerFailed(self._last_words())

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as events:
            for line in events:
                if line.endswith(b"\n"):  # else it was killed while it wrote this line
                    self._take_in(json.loads(line))
        self._process.wait()
        if self._state in ("starting", "running"):
            self._unbidden = True
            status = self._process.returncode
            self._state = exit_status(status) if signal_of(status) else "ended by itself"
        self._ended()
        self._say(self._state)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _take_in(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self._state = "running"
                self._started = True
            case "refused":
                self._refusal = event["reason"]
            case "closed":
                self._state = self._farewell
            case "warning":
                self._say(event["line"])
            case kind:
                self._handle(kind, event)

    def _end(self, state: str) -> None:
        self._state = state
        self._process.kill()
        self._reader.join()

    def _last_words(self) -> str:
        """Return who ended, by which signal or with what on its standard error."""
        words = self._log_file.read_text(errors="replace").strip().splitlines()[-5:] if self._log_file.exists() else []
        status = self._process.poll()
        if signal_of(status):
            return "\n".join([f"{self.name} was {exit_status(status)}", *words])
        return f"{self.name} ended by itself: " + ("\n".join(words) or exit_status(status))

    def _cluster_stops(self) -> None:
        if not self.alive:
            return
        if self.cluster.nodes.backend == "attached":
            self.close()  # the cluster keeps running, so leave its groups cleanly
        else:
            self._end("ended with the cluster")
