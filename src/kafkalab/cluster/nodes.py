"""The nodes of a cluster: how they run, and what each of them logs and knows."""

from __future__ import annotations

from collections.abc import Callable

from kafkalab.cluster.backends.control import require_files
from kafkalab.cluster.faults import Faults
from kafkalab.cluster.lifecycle import Lifecycle
from kafkalab.cluster.view import BrokerState, Fault, ShareGroupView
from kafkalab.cluster.wire import Features
from kafkalab.lifeline import Run

__all__ = ["Nodes"]


class Nodes:
    """The nodes of a cluster; `Cluster.nodes` gives it."""

    def __init__(self, lifecycle: Lifecycle, faults: Faults) -> None:
        self._lifecycle = lifecycle
        self._faults = faults

    @property
    def backend(self) -> str:
        """Name of the back end that runs them: ``local``, ``docker`` or ``attached``."""
        return self._lifecycle.backend_name

    @property
    def running(self) -> bool:
        """Whether the cluster runs: `Cluster.start` has returned, and `Cluster.stop` wasn't called since."""
        return self._lifecycle.is_running

    @property
    def run(self) -> Run:
        """The run of the cluster. What belongs to it, such as a worker, ends with the nodes."""
        return self._lifecycle.access().run

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a function that is called once, when the cluster stops and before its nodes end."""
        self._lifecycle.on_stop(callback)

    @property
    def faults(self) -> list[Fault]:
        """The verbs that acted on nodes since the start, in order."""
        return self._lifecycle.faults

    def add_controller(self) -> int:
        """Start one more dedicated controller and return its id. It then has the metadata log, but doesn't vote.

        If the cluster's ``kraft.version`` is 1, ``kafka-metadata-quorum.sh add-controller`` makes it a voter: see
        `Clients.controller_config`.
        """
        return self._faults.add(self._lifecycle.spec.controller, lambda node: not node.broker)

    def states(self) -> dict[int, BrokerState]:
        """Return the state of every node's process without asking Kafka: a running one is ``up``, registered or not."""
        with self._lifecycle.observing() as observer:
            return observer.states()

    def logs(self, broker: int) -> str:
        """Return a node's log so far.

        Raises
        ------
        UnknownBroker
        BackendUnavailable
            If the cluster was attached to.
        """
        access = self._lifecycle.access()
        access.require_node(broker)
        return require_files(access, "logs").logs(broker)

    def features(self) -> dict[int, Features]:
        """Return the feature levels (KIP-584) of each running broker: what its software supports, and what is finalized.

        Raises
        ------
        WaitTimeout
            If a broker doesn't answer within 10 s.
        """
        with self._lifecycle.observing() as observer:
            return observer.features()

    def eligible_leaders(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Return a topic's eligible leader replicas (KIP-966) by partition: outside the ISR, but with all committed records.

        Raises
        ------
        WaitTimeout
            If the broker doesn't answer within 10 s.
        """
        with self._lifecycle.observing() as observer:
            return observer.eligible_leaders(topic)

    def share_group(self, id: str) -> ShareGroupView | None:
        """Return a share group as its coordinator knows it now, or None if there is no group with that id.

        Raises
        ------
        OSError
            If a broker doesn't answer in time. The coordinator may be moving.
        """
        with self._lifecycle.observing() as observer:
            return observer.share_group(id)
