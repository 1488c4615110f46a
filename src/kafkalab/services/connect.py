"""`ConnectCluster`: Kafka Connect, distributed over workers, from a notebook cell."""

from __future__ import annotations

import json
import os
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from kafkalab.cluster import Cluster
from kafkalab.cluster.ports import HOST
from kafkalab.conditions import own_loopback, require
from kafkalab.distribution import announce, connect_classpath, connect_plugins, ensure_jars
from kafkalab.distribution.javac import compile_service
from kafkalab.errors import ConnectFailed, PortInUse
from kafkalab.lifeline import Run
from kafkalab.resources import require_memory
from kafkalab.running import connect_clusters
from kafkalab.security.files import write_private
from kafkalab.services.answers import direct
from kafkalab.services.base import Service
from kafkalab.services.connect_failures import Failures
from kafkalab.services.connect_view import ConnectView, WorkerView, connectors_in
from kafkalab.services.java_process import JavaProcess
from kafkalab.services.own_plugins import OWN_PLUGINS
from kafkalab.settings import as_text, format_properties
from kafkalab.tar import unpack
from kafkalab.waiting import wait_until

__all__ = ["ConnectCluster", "ConnectWorker"]

T = TypeVar("T")
Plugin = Literal["avro-converter", "debezium-postgres", "jdbc", "mqtt-source"]

_TRANSFORMATION = "org.apache.kafka.connect.transforms.Transformation"
_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
_START_TIMEOUT = 180.0
_ANSWER_SECONDS = 10.0
_MEMORY = 220 << 20
_REQUEST_SECONDS = 60.0
_NOT_YET = (b"STOPPED state", b"tasks haven't stopped completely yet", b"rebalance is expected")
"""Parts of a worker's answer when it refuses a request only for the moment."""

_SETTINGS: Mapping[str, str] = {
    # As in Kafka's own connect-distributed.properties.
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    # Classes are found by their registration: the default, to look through all jars as well, takes seconds.
    "plugin.discovery": "service_load",
    # Source offsets are kept every second (by default every minute).
    "offset.flush.interval.ms": "1000",
    # A worker that was killed is missed after 3 s (10), and its tasks are given away at once (after 5 minutes).
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
    # And so is a sink's consumer, after 6 s (45): no broker takes less by default.
    "consumer.session.timeout.ms": "6000",
    "consumer.heartbeat.interval.ms": "1500",
    # 25 would take longer to make than the worker to start.
    "offset.storage.partitions": "5",
}
_COPIES = ("config", "offset", "status")
_WANTED_COPIES = 3


class ConnectWorker(JavaProcess):
    """One worker: a process with a REST interface on loopback. `ConnectCluster.workers` has them.

    The other workers notice a killed one when its session times out.

    Attributes
    ----------
    number
        Counted from 0.
    """

    def __init__(self, connect: ConnectCluster, run: Run, number: int) -> None:
        super().__init__(run, f"worker-{number}", f"worker {number}", ConnectFailed, ports=(0,))
        self._connect = connect
        self.number = number

    def __repr__(self) -> str:
        return f"<ConnectWorker {self.number}: {'running' if self.alive else 'not running'}>"

    @property
    def url(self) -> str:
        """Its REST interface; `curl` it."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Start it if it doesn't run. On return, it answers.

        Raises
        ------
        ConnectFailed
            When it ends by itself; with Kafka's reason.
        PortInUse
            When another program took its port meanwhile.
        WaitTimeout
            When it runs, but doesn't answer in time.
        """
        if not self.alive:
            self.spawn()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until it has joined its group and answers. Raises the same errors as `start`."""
        # GET /connectors answers earlier, as if there were none (KIP-1017).
        self.await_ready(lambda: _get(f"{self.url}/health")["status"] == "healthy", _START_TIMEOUT)

    def stop(self) -> None:
        """Stop it cleanly, so that its tasks go to the other workers. On return, its process is gone."""
        self.end()

    def restart(self) -> None:
        """Stop it if it runs, and start it, so that it finds new plug-ins. On return, it answers."""
        self.stop()
        self.start()

    def spawn(self) -> None:
        """Start its process, without waiting for it."""
        require(own_loopback)
        settings = self._connect.worker_settings() | {
            "listeners": self.url,
            "rest.advertised.host.name": HOST,
            "rest.advertised.port": str(self.port),
        }
        file = write_private(self.folder / f"worker-{self.number}.properties", format_properties(settings))
        self.run_java(self._connect.heap, connect_classpath(announce), _MAIN, [str(file)])

    def require_alive(self) -> None:
        """Raise `ConnectFailed` if its process has ended, or `PortInUse` if that's because its port is taken."""
        if not self.alive and "java.net.BindException" in self.obituary():
            raise PortInUse(f"worker {self.number} ended by itself: another program has taken its port, {self.port}")
        super().require_alive()


class ConnectCluster(Service):
    """Kafka Connect beside a cluster: workers that share connectors and tasks, each with a REST interface on loopback.

    Workers run on this machine, even if the brokers are containers. You create, change and inspect connectors by REST, as with
    any Connect cluster. `start` starts all workers that don't run. On return, each has joined the group and answers. `stop`
    stops them cleanly, one after the other. Connect's topics stay.

    Parameters
    ----------
    cluster
        A running cluster. Configurations, offsets and states are kept in three topics of it, with as many replicas as there
        are brokers, three at most.
    workers
        How many.
    settings
        Worker settings. They override those that kafkalab adds.
    heap
        Java heap of a worker, as in ``-Xmx``.

    Raises
    ------
    ValueError
        If `workers` isn't a whole number from 1 on, or a setting has no value.

    Examples
    --------
    >>> with Cluster() as cluster, ConnectCluster(cluster, workers=2) as connect:  # doctest: +SKIP
    ...     requests.get(f"{connect.url}/connector-plugins").json()
    """

    _KIND, _WHO, _NOUN, _FAILURE = "connect", "the Connect cluster", "Connect cluster", ConnectFailed
    _REGISTER = connect_clusters

    def __init__(
        self, cluster: Cluster, workers: int = 1, settings: Mapping[str, object] | None = None, *, heap: str = "128m"
    ) -> None:
        if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
            raise ValueError(f"the number of workers is a number from 1 on, not {workers!r}")
        super().__init__(cluster)
        self.heap = heap
        self._cluster = cluster
        self._count = workers
        self._settings = as_text(settings or {})
        self._workers: list[ConnectWorker] = []

    # -- life ---------------------------------------------------------------------------------------------------

    def add_worker(self) -> ConnectWorker:
        """Start one more worker, which gets its share of the tasks. On return, it answers.

        Raises
        ------
        ConnectFailed
            When `start` wasn't called.
        ConnectFailed, WaitTimeout, ClusterNotRunning, NotEnoughResources
            As for `start`. The other workers are left as they are.
        """
        if not self._workers:
            raise ConnectFailed("there are no Connect workers yet: call start() first")
        require_memory(_MEMORY, "one more Connect worker")
        with self._life:
            worker = ConnectWorker(self, self._opened(), self._count)
            try:
                worker.start()
            except BaseException:
                worker.destroy()
                raise
            self._workers.append(worker)
            self._count += 1
        return worker

    def __repr__(self) -> str:
        return f"<ConnectCluster: {sum(worker.alive for worker in self._workers)} of {self._count} workers running>"

    @property
    def running(self) -> bool:
        """Whether all its workers run."""
        return len(self._workers) == self._count and all(worker.alive for worker in self._workers)

    def add_plugin(self, name: Plugin) -> None:
        """Put a plug-in into the plug-in folder. Workers find it at their next start.

        Jars of other projects are downloaded on first use and verified.

        Parameters
        ----------
        name
            ``debezium-postgres``: Debezium's change data capture for PostgreSQL (25 MB). Of the course's own: ``jdbc``, a
            source that polls a table of PostgreSQL and a sink; ``mqtt-source``, a source for MQTT; ``avro-converter``, whose
            class is ``kafkalab.AvroConverter``.

        Raises
        ------
        ValueError
            When there's no such plug-in here.
        DownloadError, HashMismatch
            When it isn't in the cache and cannot be downloaded, or is not what was locked.
        """
        if name not in get_args(Plugin):
            raise ValueError(f"there is no plug-in {name!r} here; there are {', '.join(get_args(Plugin))}")
        if own := OWN_PLUGINS.get(name):
            jars, folder = own.jars(announce), self.plugins / name
            folder.mkdir(exist_ok=True)
            for jar in jars:
                (folder / jar.name).unlink(missing_ok=True)
                os.symlink(jar, folder / jar.name)
            return
        [archive] = ensure_jars(name, announce)
        with tarfile.open(archive) as packed:
            unpack(packed, self.plugins)

    def compile_plugin(self, source: str, service: str = _TRANSFORMATION) -> Path:
        """Compile a plug-in of your own into the plug-in folder, and register it there. You don't need a JDK.

        Workers find it at their next start.

        Parameters
        ----------
        source
            Java 17 source of a public class.
        service
            Full name of what it implements: a transformation, or ``org.apache.kafka.connect.source.SourceConnector``.

        Returns
        -------
        Path
            The jar.

        Raises
        ------
        JavaError
            When it doesn't compile; with what the compiler says.
        DownloadError, HashMismatch
            When the compiler (3 MB) isn't in the cache and cannot be downloaded, or is not what was locked.
        """
        return compile_service(source, service, connect_classpath(announce), self.plugins, announce)

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def workers(self) -> tuple[ConnectWorker, ...]:
        """Its workers. Empty before `start`."""
        return tuple(self._workers)

    @property
    def url(self) -> str:
        """The REST interface of a running worker. Any worker answers for the whole cluster.

        Raises
        ------
        ConnectFailed
            When none runs.
        """
        for worker in self._workers:
            if worker.alive:
                return worker.url
        raise ConnectFailed("no Connect worker runs: call start() first")

    @property
    def plugins(self) -> Path:
        """The plug-in folder. Workers look into it when they start, for jars and folders of jars.

        Each plug-in needs its registration in ``META-INF/services``. Kafka's file connectors are there from the start.
        """
        return self._opened().directory / "plugins"

    def states(self) -> dict[str, str]:
        """Return the state of each connector and task, in Connect's words.

        Returns
        -------
        dict
            For example ``{"files": "RUNNING", "files task 0": "FAILED"}``. A connector that no worker has begun yet is
            ``UNASSIGNED``.
        """
        states = dict.fromkeys(_get(f"{self.url}/connectors"), "UNASSIGNED")
        for name, status in self._statuses().items():
            states[name] = status["connector"]["state"]
            states |= {f"{name} task {task['id']}": task["state"] for task in status["tasks"]}
        return states

    def describe(self) -> ConnectView:
        """Return the workers, connectors and tasks as they are now, with the lag of sinks."""
        workers = tuple(WorkerView(worker.number, worker.url, worker.alive) for worker in self._workers)
        try:
            answer = _get(f"{self.url}/connectors?expand=status")
        except (ConnectFailed, OSError):
            return ConnectView(workers, None)
        groups = self._cluster.describe(groups=True).groups
        lag = {id_: sum(group.lag.values()) for id_, group in groups.items() if group.lag}
        return ConnectView(workers, connectors_in(answer, workers, lag))

    def wait_until_running(self, connector: str, timeout: float = 60) -> None:
        """Wait until a connector has at least one task, and it and all its tasks are RUNNING.

        Raises
        ------
        ConnectFailed
            If one of them has failed, with the reason from its trace. An earlier failure, which a worker reports until its
            tasks have started with new settings, doesn't count. If there is no such connector.
        WaitTimeout
            If time runs out. The message has the states.
        """

        def running() -> bool:
            status = _get(f"{self.url}/connectors/{connector}/status")
            return bool(status["tasks"]) and all(part["state"] == "RUNNING" for part in (status["connector"], *status["tasks"]))

        self.wait_until(running, timeout, f"{connector} to run", by=connector, ignore=(OSError,))

    def wait_until(
        self,
        condition: Callable[[], T],
        timeout: float,
        what: str,
        *,
        by: str | Collection[str],
        ignore: tuple[type[Exception], ...] = (),
    ) -> T:
        """Wait as `kafkalab.wait_until` does, but give up as soon as one of these connectors has failed.

        Parameters
        ----------
        condition, timeout, what, ignore
            As for `kafkalab.wait_until`.
        by
            The connector that brings the condition about, or several.

        Raises
        ------
        ConnectFailed
            If one of these connectors has failed or doesn't exist, as for `wait_until_running`; if no worker runs.
        WaitTimeout
            If time runs out. The message has the states.
        """
        names = [by] if isinstance(by, str) else by
        failures = Failures(names)

        def not_failed() -> None:
            with suppress(OSError):  # a rebalance is under way
                statuses = self._statuses()
                # One that was just created has no status yet.
                existing = statuses if statuses.keys() >= set(names) else _get(f"{self.url}/connectors")
                failures.look(existing, statuses)

        return wait_until(condition, timeout, what, last_seen=self.states, ignore=ignore, unless=not_failed)

    def forget(self, connector: str) -> None:
        """Delete a connector and its offsets. A new connector of that name starts from the beginning. Nothing else is deleted.

        By REST that takes three requests: stop it, delete its offsets, delete the connector.

        Raises
        ------
        ConnectFailed
            If a worker refuses, or no worker runs.
        """
        for method, path in (("PUT", "/stop"), ("DELETE", "/offsets"), ("DELETE", "")):
            done = partial(self._is_done, method, f"/connectors/{connector}{path}")
            wait_until(done, _REQUEST_SECONDS, f"{connector} to be deleted", last_seen=self.states, ignore=(OSError,))

    # -- parts --------------------------------------------------------------------------------------------------

    def _statuses(self) -> dict[str, Any]:
        """Return the status of each connector that a worker has begun, by name."""
        return {name: entry["status"] for name, entry in _get(f"{self.url}/connectors?expand=status").items()}

    def _is_done(self, method: str, path: str) -> bool:
        """Send a request about a connector. Return False if it must be sent again later.

        Raises
        ------
        ConnectFailed
            If the worker refuses, or no worker runs.
        OSError
            If the worker doesn't answer.
        """
        try:
            direct.open(urllib.request.Request(f"{self.url}{path}", method=method), timeout=_ANSWER_SECONDS).close()
        except urllib.error.HTTPError as error:
            said = error.read()
            if error.code == HTTPStatus.CONFLICT or any(reason in said for reason in _NOT_YET):
                return False
            if error.code != HTTPStatus.NOT_FOUND:  # else there is no such connector, which is as good
                raise ConnectFailed(f"a worker refuses {method} {path}: {said.decode(errors='replace')}") from None
        return True

    def worker_settings(self) -> dict[str, str]:
        """Return the settings that all workers share."""
        # All brokers count, not only those that are up: a worker may start while some are down.
        brokers = sum(bool(node.address) for node in self._cluster.describe(groups=False).brokers.values())
        copies = {f"{what}.storage.replication.factor": str(min(_WANTED_COPIES, brokers)) for what in _COPIES}
        where = {"bootstrap.servers": self._cluster.bootstrap_servers, "plugin.path": str(self.plugins)}
        return {**where, **_SETTINGS, **copies, **self._settings}

    def _require(self) -> None:
        require_memory(self._count * _MEMORY, f"Connect with {self._count} worker{'s' if self._count > 1 else ''}")

    def _set_up(self, run: Run) -> None:
        self._held.callback(self._destroy_workers)
        (run.directory / "plugins").mkdir()
        for jar in connect_plugins(announce):
            os.symlink(jar, run.directory / "plugins" / jar.name)

    def _begin(self) -> None:
        run = self._opened()
        while len(self._workers) < self._count:
            self._workers.append(ConnectWorker(self, run, len(self._workers)))
        for worker in self._workers:
            if not worker.alive:
                worker.spawn()
        for worker in self._workers:
            worker.wait_until_ready()  # one that ended meanwhile isn't started a second time

    def _shut_down(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _destroy_workers(self) -> None:
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.destroy()


def _get(url: str) -> Any:
    """Return a worker's answer to a GET, as JSON.

    Raises
    ------
    OSError
        If it doesn't answer, or answers with an error (409 during a rebalance).
    """
    with direct.open(url, timeout=_ANSWER_SECONDS) as answer:
        return json.load(answer)
