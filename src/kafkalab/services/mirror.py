"""`MirrorMaker`: Kafka's MirrorMaker 2, from a notebook cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafkalab.cluster import Cluster
from kafkalab.cluster.offsets import end_offsets
from kafkalab.distribution import announce, connect_classpath
from kafkalab.errors import MirrorFailed
from kafkalab.lifeline import Run
from kafkalab.resources import require_memory
from kafkalab.running import mirrors
from kafkalab.security.files import write_private
from kafkalab.services.base import SingleServer
from kafkalab.services.java_process import JavaProcess
from kafkalab.services.mirror_status import Flow, StatusReader
from kafkalab.services.mirror_view import CopyView, FlowView, copies_of
from kafkalab.settings import as_text, format_properties
from kafkalab.waiting import wait_until

__all__ = ["MirrorMaker"]

T = TypeVar("T")

_ANSWER_SECONDS = 10.0
_MEMORY = 300 << 20

_ENABLED = re.compile(r"(.+)->(.+)\.enabled")

_SETTINGS_OF_A_CLUSTER: Mapping[str, str] = {
    # Find plugin classes by their registration. The default looks through all jars, which takes seconds.
    "plugin.discovery": "service_load",
    # Notice a killed MirrorMaker after 2 s instead of 10 s, and give its work to the next one at once instead of after five
    # minutes.
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
}

# MirrorMaker's own topics → how many replicas of each it asks for by default.
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


class MirrorMaker(SingleServer[JavaProcess]):
    """Kafka's MirrorMaker 2 in a process of its own. It copies topics from cluster to cluster.

    It's a client of both sides, so it runs on this machine even if the brokers run in containers.

    On return of `start`, Kafka Connect, which runs MirrorMaker's connectors, has reported every connector of every enabled flow
    as running. It looks up the topics to copy after that, so the first record may take another second. On `stop`, it writes
    what it has read, and then tries to save its position. If that takes more than 20 s, for example because a cluster doesn't
    answer, it's killed.

    Parameters
    ----------
    clusters
        Running clusters, by the alias that the settings use.
    settings
        The contents of ``mm2.properties``, as ``connect-mirror-maker.sh`` takes it, for example
        ``{"first->second.enabled": True, "first->second.topics": "stock-prices"}``. kafkalab adds ``clusters``, the
        addresses, and settings for a quick start and a quick takeover. It sends heartbeats only where a flow is enabled.
        Where a cluster has fewer brokers than one of MirrorMaker's topics wants replicas, the topic gets one replica per
        broker. The settings given here win over all of these.
    heap
        Java heap, as in ``-Xmx``.

    Raises
    ------
    ValueError
        If no flow is enabled, a flow names an unknown cluster, or a setting has no value.

    Examples
    --------
    >>> flow = {"first->second.enabled": True, "first->second.topics": "stock-prices"}
    >>> with MirrorMaker({"first": first, "second": second}, flow) as mirror:  # doctest: +SKIP
    ...     ...
    """

    _KIND, _WHO, _NOUN, _FAILURE = "mirror", "MirrorMaker", "MirrorMaker", MirrorFailed
    _REGISTER = mirrors
    _START_SECONDS = 180.0

    def __init__(self, clusters: Mapping[str, Cluster], settings: Mapping[str, object], *, heap: str = "128m") -> None:
        self.clusters = dict(clusters)
        self.settings = as_text(settings)
        self.flows = _flows(self.clusters, self.settings)
        super().__init__(*self.clusters.values())
        self._heap = heap
        self._status: StatusReader | None = None

    def __repr__(self) -> str:
        flows = ", ".join(map(str, self.flows))
        return f"<MirrorMaker {flows}: {'running' if self.running else 'not running'}>"

    # -- sight --------------------------------------------------------------------------------------------------

    def wait_for(
        self, condition: Callable[[], T], what: str, timeout: float = 60.0, *, last_seen: Callable[[], object] | None = None
    ) -> T:
        """Wait until a condition that MirrorMaker brings about is true, and return what it returned.

        Parameters
        ----------
        condition, what, timeout, last_seen
            As in `kafkalab.wait_until`. By default, the message of a timeout shows the states of the connectors.

        Raises
        ------
        MirrorFailed
            As soon as MirrorMaker's process has ended, a connector or task has failed, or no broker of a cluster runs.
            The message has Kafka's reason.
        WaitTimeout
            If time runs out while all of them run.
        """
        return wait_until(condition, timeout, what, last_seen=last_seen or self.states, unless=self._require_work)

    @property
    def pid(self) -> int | None:
        """Return its process id.

        Raises
        ------
        MirrorFailed
            If it wasn't started.
        """
        return self._required().pid

    def logs(self) -> str:
        """Return its log since its first start. Empty if it's stopped."""
        return "" if self._server is None else self._server.logs()

    def states(self) -> dict[str, str]:
        """Return the state of each connector and task since the last start, in Connect's words.

        Returns
        -------
        dict
            For example ``{"first->second MirrorSourceConnector": "RUNNING"}``, with more entries for its tasks
            (``… task 0``). Source: the status topic that Connect writes in the target cluster.
        """
        return self._status.states() if self._status is not None else {}

    def failures(self) -> dict[str, str]:
        """Return Kafka's reason for each connector and task that has failed since the last start."""
        return self._status.failures() if self._status is not None else {}

    def describe(self) -> list[FlowView]:
        """Return each flow with the states of its connectors, and how far its topics and their copies reach.

        Raises
        ------
        MirrorFailed
            If its process, or one side, doesn't run.
        """
        self._require_both_sides()
        states, failures = self.states(), self.failures()
        return [FlowView(flow, _of(flow, states), _of(flow, failures), self._copies_by(flow)) for flow in self.flows]

    # -- parts --------------------------------------------------------------------------------------------------

    def _properties(self) -> dict[str, str]:
        properties = {"clusters": ", ".join(self.clusters)}
        for alias, cluster in self.clusters.items():
            properties[f"{alias}.bootstrap.servers"] = cluster.bootstrap_servers
            properties |= {f"{alias}.{key}": value for key, value in _SETTINGS_OF_A_CLUSTER.items()}
        for source in self.clusters:
            for target in self.clusters:
                # Otherwise MirrorMaker runs a herder with threads and clients for each other pair, only to send heartbeats.
                if source != target and Flow(source, target) not in self.flows:
                    properties[f"{source}->{target}.emit.heartbeats.enabled"] = "false"
        return {**properties, **self._copies(), **self.settings}

    def _copies(self) -> dict[str, str]:
        """Return smaller replication factors where there are fewer brokers than Kafka's defaults need."""
        brokers = {alias: len(cluster.describe(groups=False).brokers_up) for alias, cluster in self.clusters.items()}
        factors: dict[str, tuple[int, int]] = {}  # setting → replicas wanted, and brokers for them
        for flow in self.flows:
            for key, wanted in _COPIES_FOR_A_FLOW.items():
                if key not in self.settings:  # a factor for this flow would win over the learner's for all flows
                    both = (flow.source, flow.target) if key.startswith("offset-syncs") else (flow.target,)
                    factors[f"{flow}.{key}"] = wanted, min(brokers[alias] for alias in both)
        for alias in self.clusters:
            factors |= {f"{alias}.{key}": (wanted, brokers[alias]) for key, wanted in _COPIES_IN_THE_TARGET.items()}
        return {setting: str(most) for setting, (wanted, most) in factors.items() if most < wanted}

    def _copies_by(self, flow: Flow) -> tuple[CopyView, ...]:
        source, target = self.clusters[flow.source], self.clusters[flow.target]
        names = copies_of(flow, self.settings, source.describe(groups=False).topics, target.describe(groups=False).topics)
        return tuple(
            CopyView(topic, copy, sum(end_offsets(source, topic).values()), sum(end_offsets(target, copy).values()))
            for topic, copy in names.items()
        )

    def _require(self) -> None:
        for alias, cluster in self.clusters.items():
            _require_answer(alias, cluster)
        require_memory(_MEMORY, "MirrorMaker")

    def _make_server(self, run: Run) -> JavaProcess:
        self._held.callback(self._close_status)
        return JavaProcess(run, "mirror", self._WHO, MirrorFailed)

    def _begin(self) -> None:
        self._close_status()
        self._status = StatusReader(self.clusters, self.flows)  # before the start, so that it reads only what's new
        super()._begin()

    def _launch(self, server: JavaProcess) -> None:
        properties = format_properties(self._properties())
        file = write_private(server.folder / "mm2.properties", properties)  # it may hold a password
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        server.run_java(self._heap, connect_classpath(announce), main, [str(file)])

    def _is_ready(self, server: JavaProcess) -> bool:
        self._require_work()
        states = self.states()
        return all(states.get(name) == "RUNNING" for flow in self.flows for name in flow.connectors())

    def _observed(self) -> object:
        return self.states()

    def _shut_down(self) -> None:
        if self._server is not None:
            self._server.end()

    def _require_work(self) -> None:
        """Raise `MirrorFailed` if its process has ended, a connector or task has failed, or one side doesn't run."""
        server = self._require_both_sides()
        if failures := self.failures():
            raise MirrorFailed(server.last_words("; ".join(f"{what} failed: {why}" for what, why in failures.items())))

    def _require_both_sides(self) -> JavaProcess:
        """Return its process, or raise `MirrorFailed` if that has ended or one side doesn't run."""
        server = self._required()
        server.require_alive()
        # Its connectors would still be RUNNING, and it would try to reconnect forever.
        if dead := [
            alias for alias, cluster in self.clusters.items() if set(cluster.nodes.states().values()) <= {"dead", "stopped"}
        ]:
            raise MirrorFailed(f"no broker of the cluster {dead[0]!r} runs: MirrorMaker needs both sides")
        return server

    def _close_status(self) -> None:
        if self._status is not None:
            self._status.close()
            self._status = None


def _flows(clusters: Mapping[str, Cluster], settings: Mapping[str, str]) -> tuple[Flow, ...]:
    flows = tuple(Flow(*m.groups()) for key, value in settings.items() if (m := _ENABLED.fullmatch(key)) and value == "true")
    if not flows:
        raise ValueError('no flow is enabled: MirrorMaker needs a setting such as "first->second.enabled": True')
    if unknown := sorted({alias for flow in flows for alias in (flow.source, flow.target)} - clusters.keys()):
        raise ValueError(f"there's no cluster with the alias {unknown[0]!r}; there are {', '.join(clusters)}")
    return flows


def _of(flow: Flow, said: Mapping[str, str]) -> dict[str, str]:
    """Return what was said about a flow's connectors and tasks, by their names alone."""
    return {name.removeprefix(f"{flow} "): words for name, words in said.items() if name.startswith(f"{flow} ")}


def _require_answer(alias: str, cluster: Cluster) -> None:
    # MirrorMaker itself would try for a minute. If the source doesn't answer, it then carries on and reports nothing.
    address = cluster.bootstrap_servers
    admin = AdminClient(cluster.client_config())
    try:
        admin.list_topics(timeout=_ANSWER_SECONDS)
    except KafkaException as error:
        raise MirrorFailed(
            f"the cluster {alias!r} doesn't answer at {address} ({error.args[0].name()}): MirrorMaker needs both sides to start"
        ) from error
