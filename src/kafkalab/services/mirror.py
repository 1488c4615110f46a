"""`MirrorMaker`: Kafka's MirrorMaker 2, from a notebook cell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafkalab.cluster import Cluster
from kafkalab.cluster.resources import require_memory
from kafkalab.distribution import announce, connect_classpath
from kafkalab.errors import MirrorFailed
from kafkalab.lifeline import Owner, Run, reap
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.security.files import write_private
from kafkalab.services.java_process import JavaProcess
from kafkalab.services.mirror_status import Flow, StatusReader
from kafkalab.settings import as_text, format_properties
from kafkalab.waiting import wait_until

__all__ = ["MirrorMaker"]

_START_TIMEOUT = 180.0
_ANSWER_SECONDS = 10.0
_MEMORY = 300 << 20

_ENABLED = re.compile(r"(.+)->(.+)\.enabled")

_SETTINGS_OF_A_CLUSTER: Mapping[str, str] = {
    # The classes that can be plugged in are found by their registration: the default, to look through all jars, takes seconds.
    "plugin.discovery": "service_load",
    # A MirrorMaker that was killed is missed after 2 s instead of 10 s, and the next one gets its work at once instead of after
    # five minutes.
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
}

# Topics that MirrorMaker makes → how many copies of each it wants.
_COPIES_FOR_A_FLOW: Mapping[str, int] = {
    "replication.factor": 2,
    "checkpoints.topic.replication.factor": 3,
    "heartbeats.topic.replication.factor": 3,
    "offset-syncs.topic.replication.factor": 3,
}
_COPIES_IN_THE_TARGET: Mapping[str, int] = {
    "config.storage.replication.factor": 3,
    "offset.storage.replication.factor": 3,
    "status.storage.replication.factor": 3,
}


class MirrorMaker:
    """Kafka's MirrorMaker 2 in a process of its own: copies topics from cluster to cluster.

    It runs beside the brokers on this machine, also where they are containers: it is a client of both sides and no part of
    either. It ends with this process, and with the first of its clusters that is stopped.

    Parameters
    ----------
    clusters
        Running clusters, by the alias under which the settings speak of them.
    settings
        What ``connect-mirror-maker.sh`` would be given as ``mm2.properties``, for example
        ``{"first->second.enabled": True, "first->second.topics": "stock-prices"}``. kafkalab adds ``clusters``, the
        addresses, and what makes it quick to start and to be replaced; heartbeats are only sent where a flow is enabled. Where
        a cluster has fewer brokers than a topic of MirrorMaker's wants copies, there are as many copies as brokers. A setting
        of one's own always wins.
    heap
        Java heap, as in ``-Xmx``.

    Raises
    ------
    ValueError
        When no flow is enabled, or one names a cluster that is not there; when a setting has no value.

    Examples
    --------
    >>> flow = {"first->second.enabled": True, "first->second.topics": "stock-prices"}
    >>> with MirrorMaker({"first": first, "second": second}, flow) as mirror:  # doctest: +SKIP
    ...     ...
    """

    def __init__(self, clusters: Mapping[str, Cluster], settings: Mapping[str, object], *, heap: str = "128m") -> None:
        self.clusters = dict(clusters)
        self.settings = as_text(settings)
        self.flows = _flows(self.clusters, self.settings)
        self._heap = heap
        self._run: Run | None = None
        self._owner = Owner()
        self._process: JavaProcess | None = None
        self._status: StatusReader | None = None
        self._noted: set[Cluster] = set()
        end_nameless()

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it; also again, after it ended. One that runs is left as it is.

        On return Kafka Connect, in which MirrorMaker lives, has reported every connector of every enabled flow as running.
        The topics to be copied are looked up after that, so the first record may be a second away.

        Raises
        ------
        MirrorFailed
            When a cluster does not answer, when the process ends by itself, or when a connector fails; with Kafka's reason.
        WaitTimeout
            When it runs, but its connectors do not in time.
        NotEnoughResources, DownloadError, JavaError
            Why it could not start, and what to do about it.
        """
        if self.alive:
            return self
        for alias, cluster in self.clusters.items():
            _require_answer(alias, cluster)
        require_memory(_MEMORY, "MirrorMaker")
        if self._run is None or self._process is None:
            self._run, self._owner = Run.create("mirror"), Owner()
            self._process = JavaProcess(self._run, "mirror")
        self._close_status()
        self._status = StatusReader(self.clusters, self.flows)  # before the start: from here on what it says is new
        try:
            self._spawn(self._run, self._process)
            what = "MirrorMaker's connectors to run"
            wait_until(self._ready, _START_TIMEOUT, what, last_seen=lambda: self._last_words(self.states()))
        except BaseException:
            self._discard()
            raise
        for cluster in self.clusters.values():
            if cluster not in self._noted:
                self._noted.add(cluster)
                cluster.on_stop(self._cluster_stops)
        note_started(self, "MirrorMaker", lambda: self.alive, self.stop)
        return self

    def stop(self) -> None:
        """End it in order: what was read is written and noted. On return its process and its files are gone.

        One that has not ended after 20 s (a cluster does not answer, say) is killed. A stopped one is left as it is. In
        a process that was forked off after `start`, nothing is ended: MirrorMaker is its parent's.
        """
        if not self._owner.is_me:
            return
        if self._process is not None:
            self._process.end()
        self._discard()

    def kill(self) -> None:
        """SIGKILL. On return the process is gone; its log stays, and `start` starts it again.

        Raises
        ------
        MirrorFailed
            When it does not run.
        """
        if not self.alive:
            raise MirrorFailed("MirrorMaker cannot be killed: it does not run")
        assert self._process is not None
        self._process.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        flows = ", ".join(map(str, self.flows))
        return f"<MirrorMaker {flows}: {'running' if self.alive else 'not running'}>"

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int:
        """Process id.

        Raises
        ------
        MirrorFailed
            When it was not started.
        """
        if self._process is None or self._process.pid is None:
            raise MirrorFailed("MirrorMaker was not started")
        return self._process.pid

    def logs(self) -> str:
        """Return its log so far; empty when it was not started, or is stopped."""
        return "" if self._process is None else self._process.logs()

    def states(self) -> dict[str, str]:
        """State of each connector and task since the last start, in Connect's words.

        Returns
        -------
        dict
            For example ``{"first->second MirrorSourceConnector": "RUNNING"}``, and more for its tasks (``… task 0``),
            as Connect writes it into the target cluster.
        """
        return self._status.states() if self._status is not None else {}

    def failures(self) -> dict[str, str]:
        """Kafka's reason, for each connector and task that has failed since the last start."""
        return self._status.failures() if self._status is not None else {}

    # -- parts --------------------------------------------------------------------------------------------------

    def _properties(self) -> dict[str, str]:
        properties = {"clusters": ", ".join(self.clusters)}
        for alias, cluster in self.clusters.items():
            properties[f"{alias}.bootstrap.servers"] = cluster.bootstrap_servers
            properties |= {f"{alias}.{key}": value for key, value in _SETTINGS_OF_A_CLUSTER.items()}
        for source in self.clusters:
            for target in self.clusters:
                # Else each pair has a herder of its own, with its threads and clients, for heartbeats alone.
                if source != target and Flow(source, target) not in self.flows:
                    properties[f"{source}->{target}.emit.heartbeats.enabled"] = "false"
        return {**properties, **self._copies(), **self.settings}

    def _copies(self) -> dict[str, str]:
        """Replication factors that the clusters' brokers are enough for, where Kafka's own are too large."""
        brokers = {alias: len(cluster.describe(groups=False).brokers_up) for alias, cluster in self.clusters.items()}
        there: dict[str, tuple[int, int]] = {}  # setting → copies wanted, and brokers for them
        for flow in self.flows:
            for key, wanted in _COPIES_FOR_A_FLOW.items():
                if key not in self.settings:  # the learner's, for all flows, would count less than one for this flow
                    both = (flow.source, flow.target) if key.startswith("offset-syncs") else (flow.target,)
                    there[f"{flow}.{key}"] = wanted, min(brokers[alias] for alias in both)
        for alias in self.clusters:
            there |= {f"{alias}.{key}": (wanted, brokers[alias]) for key, wanted in _COPIES_IN_THE_TARGET.items()}
        return {setting: str(most) for setting, (wanted, most) in there.items() if most < wanted}

    def _spawn(self, run: Run, process: JavaProcess) -> None:
        file = write_private(run.directory / "mm2.properties", format_properties(self._properties()))  # it may hold a password
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        process.spawn(self._heap, connect_classpath(announce), main, [str(file)])

    def _ready(self) -> bool:
        if not self.alive:
            raise MirrorFailed(self._last_words("MirrorMaker ended by itself"))
        if failures := self.failures():
            raise MirrorFailed(self._last_words(*(f"{what} failed: {why}" for what, why in failures.items()), reason=False))
        states = self.states()
        return all(states.get(name) == "RUNNING" for flow in self.flows for name in flow.connectors())

    def _last_words(self, *said: object, reason: bool = True) -> str:
        assert self._process is not None
        return self._process.last_words(*said, reason=reason)

    def _close_status(self) -> None:
        if self._status is not None:
            self._status.close()
            self._status = None

    def _discard(self) -> None:
        run, self._run = self._run, None
        self._close_status()
        if run is not None:
            reap(run)
        if self._process is not None:
            self._process.kill()  # takes leave of it

    def _cluster_stops(self) -> None:
        self._noted.clear()
        self._discard()


def _flows(clusters: Mapping[str, Cluster], settings: Mapping[str, str]) -> tuple[Flow, ...]:
    flows = tuple(Flow(*m.groups()) for key, value in settings.items() if (m := _ENABLED.fullmatch(key)) and value == "true")
    if not flows:
        raise ValueError('no flow is enabled: MirrorMaker needs a setting such as "first->second.enabled": True')
    if unknown := sorted({alias for flow in flows for alias in (flow.source, flow.target)} - clusters.keys()):
        raise ValueError(f"no cluster goes by the alias {unknown[0]!r}; there are {', '.join(clusters)}")
    return flows


def _require_answer(alias: str, cluster: Cluster) -> None:
    # MirrorMaker itself would try for a minute, and then go on without a word where it is the source that is not there.
    address = cluster.bootstrap_servers
    admin = AdminClient(cluster.client_config())
    try:
        admin.list_topics(timeout=_ANSWER_SECONDS)
    except KafkaException as error:
        raise MirrorFailed(
            f"the cluster {alias!r} does not answer at {address} ({error.args[0].name()}): "
            "MirrorMaker needs both sides to start"
        ) from error
