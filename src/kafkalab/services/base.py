"""What runs beside a cluster, from `start` to `stop`: the life that all services share.

A new service is a class with what differs: how to make its server, the command that starts it, and how to ask it whether
it's ready.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from kafkalab import underway
from kafkalab.errors import KafkaLabError
from kafkalab.lifeline import Owner, Run, reap
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.running import Register
from kafkalab.services.server import Server

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["RestartableServer", "Service", "SingleServer"]

S = TypeVar("S", bound=Server)


class Service(ABC):
    """Something that runs beside a cluster.

    Several threads may use it: a `stop` waits for a `start` in progress. It ends with this process, however that ends, and
    with the first of its clusters that stops. A process that was forked after `start` leaves it alone.

    Parameters
    ----------
    *clusters
        The clusters that it ends with.
    """

    _KIND: ClassVar[str]
    """Prefix of its runs' ids."""
    _NOUN: ClassVar[str]
    """What it is, as in ``An earlier … still ran``."""
    _WHO: ClassVar[str]
    """The same as the subject of a sentence."""
    _FAILURE: ClassVar[type[KafkaLabError]]
    """Raised when it ends by itself, or isn't running."""
    _REGISTER: ClassVar[Register[Any] | None] = None
    """Where displays find it while it runs."""
    _KEEPS_DATA = False
    """Whether its files stay when it could not be started again."""

    def __init__(self, *clusters: Cluster) -> None:
        self._clusters = clusters
        self._ends_with: set[Cluster] = set()  # the clusters that call `_cluster_stops`
        self._run: Run | None = None
        self._held = contextlib.ExitStack()  # how to release what it holds: processes, ports, files
        self._on_stop: list[Callable[[], None]] = []
        self._owner = Owner()
        self._life = threading.RLock()  # held while it starts, and while it stops
        end_nameless()

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it, or start it again after it ended. On return, it's ready. Does nothing if it already runs.

        If a first start fails or is interrupted, nothing stays behind.

        Raises
        ------
        KafkaLabError
            If it ends by itself, with its own reason and its log's last lines: the error of its kind, such as `MqttFailed`.
        ClusterNotRunning
            If its cluster doesn't run.
        PortInUse, NotEnoughResources, BackendUnavailable, DownloadError, HashMismatch, JavaError
            Why it can't start, and what to do about it.
        WaitTimeout
            If it runs, but isn't ready in time. The message has its log's last lines.
        """
        with self._life:
            if self.running:
                return self
            self._require()
            first = self._run is None
            try:
                with underway.task(f"Starting {self._WHO}"):
                    self._opened()
                    self._begin()
            except BaseException:
                if first or not self._KEEPS_DATA:
                    self._end(self._discard)
                raise
            if self._REGISTER is not None:
                self._REGISTER.announce(self, self.on_stop)
        note_started(self, self._NOUN, lambda: self._run is not None, self.stop)
        return self

    def stop(self) -> None:
        """Stop it. On return, its processes, ports and files are gone. Does nothing if it's stopped."""
        if self._owner.is_me:
            self._end(self._shut_down, self._discard)

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a function to call once, just before it stops."""
        self._on_stop.append(callback)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {'running' if self.running else 'not running'}>"

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether it runs."""

    # -- parts --------------------------------------------------------------------------------------------------

    def _require(self) -> None:  # noqa: B027 - some need nothing
        """Raise an error if it can't start on this machine now."""

    @abstractmethod
    def _set_up(self, run: Run) -> None:
        """Make what lasts from the first start to the stop, and register with `_held` how to release it."""

    @abstractmethod
    def _begin(self) -> None:
        """Start what doesn't run, and wait until it's ready."""

    def _shut_down(self) -> None:  # noqa: B027 - most may be killed
        """End it cleanly, where that matters. What still runs after this is killed."""

    def _make_run(self) -> Run:
        run = Run.create(self._KIND)
        self._held.callback(reap, run)
        return run

    def _opened(self) -> Run:
        """Return its run, and set it up if there's none."""
        with self._life:
            if self._run is None:
                self._run, self._owner = self._make_run(), Owner()
                try:
                    self._set_up(self._run)
                except BaseException:
                    self._discard()
                    raise
            for cluster in set(self._clusters) - self._ends_with:
                self._ends_with.add(cluster)
                cluster.nodes.on_stop(partial(self._cluster_stops, cluster))
            return self._run

    def _require_started(self) -> Run:
        if self._run is None:
            raise self._FAILURE(f"{self._WHO} is not running: call start() first")
        return self._run

    def _cluster_stops(self, cluster: Cluster) -> None:
        self._ends_with.discard(cluster)  # it calls once
        self._end(self._discard)

    def _end(self, *steps: Callable[[], None]) -> None:
        """Call what is registered with `on_stop`, and then these, each whatever the one before raises."""
        with self._life, contextlib.ExitStack() as ending:
            callbacks, self._on_stop = self._on_stop, []
            for step in reversed([*callbacks, *steps]):
                ending.callback(step)

    def _discard(self) -> None:
        """Kill what runs, and release all that it holds."""
        self._run = None
        self._held.close()


class SingleServer(Service, Generic[S]):
    """A service that is one server."""

    _START_SECONDS = 120.0
    _NOT_YET: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    """What `_is_ready` may raise until then."""

    _server: S | None = None

    @property
    def running(self) -> bool:
        """Whether its server runs."""
        return self._server is not None and self._server.alive

    def kill(self) -> None:
        """Kill all its processes with SIGKILL, as a crash would. On return, they're gone.

        Raises
        ------
        KafkaLabError
            If it doesn't run: the error of its kind.
        """
        if self._server is None:
            raise self._FAILURE(f"{self._WHO} can't be killed: it doesn't run")
        self._server.kill()

    def logs(self) -> str:
        """Return its log since its first start."""
        return self._required().logs()

    # -- parts --------------------------------------------------------------------------------------------------

    @abstractmethod
    def _make_server(self, run: Run) -> S:
        """Return its server, not yet started."""

    @abstractmethod
    def _launch(self, server: S) -> None:
        """Start the server's program, without waiting until it's ready."""

    @abstractmethod
    def _is_ready(self, server: S) -> bool:
        """Return whether the server has started."""

    def _observed(self) -> object:
        """Return what to show if it isn't ready in time, besides its log."""
        return "it runs"

    def _required(self) -> S:
        self._require_started()
        assert self._server is not None
        return self._server

    def _set_up(self, run: Run) -> None:
        self._server = server = self._make_server(run)
        self._held.callback(server.destroy)
        server.prepare()

    def _begin(self) -> None:
        server = self._required()
        self._launch(server)
        server.await_ready(lambda: self._is_ready(server), self._START_SECONDS, self._NOT_YET, self._observed)

    def _discard(self) -> None:
        self._server = None
        super()._discard()


class RestartableServer(SingleServer[S]):
    """A server that keeps its port and its data when it ends."""

    _KEEPS_DATA = True

    def restart(self) -> None:
        """Start it again at the same port, with its data. If it runs, stop it cleanly first. On return, it answers.

        Raises
        ------
        KafkaLabError
            If it wasn't started, or ends before it answers: the error of its kind.
        """
        with self._life, underway.task(f"Restarting {self._WHO}"):
            self._required().end()
            self._begin()
