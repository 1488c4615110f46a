"""The parent's side of every worker: its process, its lines and its end."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from kafkalab.errors import ClusterNotRunning, WorkerClosed, WorkerFailed
from kafkalab.exits import signal_of
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.waiting import wait_until
from kafkalab.workers.child import ChildProcess
from kafkalab.workers.settings import CLIENT, combine
from kafkalab.workers.topics import require_topic

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["Worker"]

_log = logging.getLogger(__name__)

_numbers: dict[str, itertools.count[int]] = {}


class Worker(ChildProcess):
    """A producer or consumer in a process of its own.

    When the constructor returns, the process has started and librdkafka has accepted its settings.

    Attributes
    ----------
    topic
        The topic it works on.
    settings
        The librdkafka settings that you passed, with dots in their names and without defaults.
    """

    _KIND: ClassVar[str]

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
            raise ClusterNotRunning(f"a {self._KIND} needs a running cluster: this one was not started, or is stopped")
        self.topic = topic
        self.settings = combine(settings)
        own_name = name or f"{self._KIND}-{next(_numbers.setdefault(self._KIND, itertools.count(1)))}"
        self._settings = combine({"client.id": own_name}, CLIENT, defaults, cluster.client_config(), self.settings)
        self._lines: list[str] = []
        self._callbacks: list[Callable[[str], object]] = []
        if name is None:
            end_nameless()
        super().__init__(cluster, own_name, cluster.nodes.run.directory / "workers" / f"{own_name.replace('/', '_')}.log")
        try:
            # Meanwhile the child imports its modules. It must not touch a missing topic, or brokers create it.
            require_topic(cluster, topic, partitions)
            self._send({"config": self._settings, "topic": topic, **start})
            self._await_start()
            if not self._started and self._state == "refused":
                raise WorkerFailed(f"{self.name} does not start with these settings: {self._reason}")
            if not self._started:
                self._require_alive("use")
        except BaseException:  # an interrupt, too: nothing half started stays behind
            self._abandon("not started")
            raise
        if name is None:
            note_started(self, self._KIND, lambda: self.alive, self.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} on {self.topic}: {self._state}>"

    @property
    def lines(self) -> list[str]:
        """The lines a terminal would show, so far."""
        return list(self._lines)

    def on_line(self, callback: Callable[[str], object]) -> None:
        """Call `callback` with each new line, in order, from another thread."""
        self._callbacks.append(callback)

    def kill(self) -> None:
        """Send SIGKILL: nothing is flushed, and the group isn't told. When it returns, the process is gone.

        Raises
        ------
        WorkerClosed, WorkerFailed
            If it doesn't run. The message says why.
        """
        self._require_alive("kill")
        super().kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What subclasses use

    def _say(self, *lines: str) -> None:
        self._lines += lines
        for callback in list(self._callbacks):
            for line in lines:
                try:
                    callback(line)
                except Exception:  # an error in a widget must not silence the worker
                    _log.exception("a callback for the lines of %s failed", self.name)

    def _send(self, command: Mapping[str, object]) -> None:
        if not self._write(command):
            self._require_alive("use")

    def _require_alive(self, verb: str) -> None:
        if self.alive:
            return
        if self._ended_by_itself:
            was = "was " if signal_of(self._process.returncode) else ""
            raise WorkerFailed(f"{self.name} {was}{self._in_words()}")
        raise WorkerClosed(f"cannot {verb} {self.name}: {self._state}; make a new {self._KIND}")

    def _wait(self, condition: Callable[[], bool], timeout: float, what: str, last_seen: Callable[[], str]) -> None:
        """Wait until a condition is true, as long as the process runs."""

        def reached() -> bool:
            alive = self.alive  # in this order: the last events before its end count, too
            if condition():
                return True
            if not alive:
                self._require_alive("wait for")
            return False

        wait_until(reached, timeout, what, last_seen=lambda: f"{last_seen()}; last lines: {self._lines[-3:]}", interval=0.02)

    def _take_in(self, event: dict[str, Any]) -> None:
        if event["event"] == "warning":
            self._say(event["line"])
        else:
            super()._take_in(event)

    def _has_ended(self) -> None:
        self._say(self._state)
