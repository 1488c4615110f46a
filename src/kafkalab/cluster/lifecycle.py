"""Start and stop one cluster, and give its other parts what it runs on."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator

from kafkalab import underway
from kafkalab.cluster import standby
from kafkalab.cluster.backends import BackendChoice
from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.observer import Observer
from kafkalab.cluster.spec import ClusterSpec
from kafkalab.cluster.view import Fault
from kafkalab.distribution import keep_all_output, put_tools_on_path
from kafkalab.errors import ClusterNotRunning, KafkaLabError
from kafkalab.lifeline import Owner, Run

__all__ = ["START_TIMEOUT", "Lifecycle"]

START_TIMEOUT = 90.0
"""Seconds until a node that starts must be a member of its cluster."""


class Lifecycle:
    """The life of one cluster: from `start` to `stop`, and again.

    Attributes
    ----------
    name, spec
        The cluster's.
    faults
        The faults since the start.
    lock
        Held while the cluster starts or stops, or gets another node.
    """

    def __init__(self, name: str, spec: ClusterSpec, backend: BackendChoice) -> None:
        self.name = name
        self.spec = spec
        self.faults: list[Fault] = []
        self.lock = threading.RLock()
        self._make_access = backend
        self._access: Access | None = None  # of a cluster that runs or is starting
        self._observer: Observer | None = None  # of a cluster that runs
        self._callbacks: list[Callable[[], None]] = []
        self._owner = Owner()

    @property
    def backend_name(self) -> str:
        """Name of the back end."""
        return self._make_access.name

    @property
    def is_running(self) -> bool:
        """Whether `start` has returned, and `stop` wasn't called since."""
        return self._observer is not None

    def start(self) -> bool:
        """Start the cluster, and return whether it didn't run before. Raises what `Cluster.start` does."""
        with self.lock:
            if self.is_running:
                return False
            try:
                self._begin()
            except BaseException:
                self._discard()
                raise
            atexit.register(self._stop_quietly)
        return True

    def _begin(self) -> None:
        with underway.task("Starting the brokers") as progress:
            put_tools_on_path()
            keep_all_output()
            self._access = standby.take(self.spec, self.backend_name)
            if self._access is None:
                self._access = self._make_access(self.spec, Run.create("cluster"))
                self._access.launch()
            self._owner = Owner()
            observer = Observer(self._access)
            observer.wait_until_ready(START_TIMEOUT, progress)
            self.faults.clear()
            self._observer = observer

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a function that `stop` calls before it ends the nodes."""
        self._callbacks.append(callback)

    def stop(self) -> None:
        """Stop the cluster; see `Cluster.stop`."""
        if not self._owner.is_me:
            return
        with self.lock:
            if self._access is None:
                return
            callbacks, self._callbacks = self._callbacks, []
            # Each is called, whatever the one before raises: the last one that is added first.
            with contextlib.ExitStack() as ending:
                ending.callback(atexit.unregister, self._stop_quietly)
                ending.callback(self._discard)
                for callback in reversed(callbacks):
                    ending.callback(callback)

    def running(self) -> tuple[Access, Observer]:
        """Return the back end and the observer of the running cluster, or raise `ClusterNotRunning`."""
        access, observer = self._access, self._observer
        if access is None or observer is None:
            what = "is still starting, in another thread" if access is not None else "is not running: call start() first"
            raise ClusterNotRunning(f"the cluster {self.name!r} {what}")
        return access, observer

    def access(self) -> Access:
        """Return the back end of the running cluster; raises as `running` does."""
        return self.running()[0]

    @contextlib.contextmanager
    def observing(self) -> Iterator[Observer]:
        """Yield the observer of the running cluster; raises as `running` does."""
        access, observer = self.running()
        with self.unless_stopped(access, "it was looked at"):
            yield observer

    @contextlib.contextmanager
    def unless_stopped(self, access: Access, meanwhile: str) -> Iterator[None]:
        """Raise `ClusterNotRunning` if something failed only because another thread stopped the cluster."""
        try:
            yield
        except Exception as error:
            if self._access is access:
                raise
            raise ClusterNotRunning(f"the cluster {self.name!r} was stopped while {meanwhile}") from error

    def _discard(self) -> None:
        access, observer = self._access, self._observer
        self._observer = self._access = None
        if observer is not None:
            observer.close()
        if access is not None:
            access.destroy()

    def _stop_quietly(self) -> None:
        with contextlib.suppress(KafkaLabError):  # the process is ending, and the reaper removes what is left
            self.stop()
