"""Read a running cluster's state, and wait until it shows something."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.groups import GroupReader, Reading
from kafkalab.cluster.login import login_from
from kafkalab.cluster.share_groups import read_share_group
from kafkalab.cluster.view import BrokerState, BrokerView, ClusterView, PartitionView, ShareGroupView
from kafkalab.cluster.wire import NO_QUORUM, BrokerConnection, Features, Metadata, Quorum
from kafkalab.errors import BrokerFailed, BrokerNotRunning, ClusterNotRunning, WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["RUNNING", "Observer"]

T = TypeVar("T")

RUNNING: tuple[BrokerState, ...] = ("up", "starting", "isolated")
"""States of a node whose process runs and answers."""

_SHARE_GROUP_TIMEOUT = 10.0  # a broker's first request to its share coordinator takes seconds

_RUNS: tuple[BrokerState, ...] = (*RUNNING, "paused")


class Observer:
    """Ask the brokers of one cluster what they know, over its own connections. It changes nothing.

    Its methods may be called from any thread.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._connections: dict[int, BrokerConnection] = {}
        self._asking = threading.Lock()  # a connection carries one request at a time
        self._controller: int | None = None  # the active one, when it was last seen
        self._groups = GroupReader(self.connect)
        self._closed = threading.Event()

    def close(self) -> None:
        """Close all connections. Threads that still wait get `ClusterNotRunning`. Safe to call again."""
        self._closed.set()
        self._groups.close()
        with self._asking:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    # -- views --------------------------------------------------------------------------------------------------

    def describe(self, groups: bool = True, internal: bool = False) -> ClusterView:
        """Return the cluster's current state; see `Cluster.describe`."""
        access = self._access
        answer = wait_until(self._ask_any, 5, "an answer from any broker", last_seen=self.states)
        assert answer is not None  # wait_until never returns a false value
        metadata, quorum = answer
        brokers = {}
        for node_id, node in access.nodes().items():
            state = access.state(node_id)
            if state == "up" and node.broker and node_id not in metadata.brokers:
                state = "starting"
            brokers[node_id] = BrokerView(
                node_id,
                access.address(node_id, access.spec.listeners[0].name) if node.broker else "",
                node.rack,
                state,
                controller=node_id == quorum.leader,
                voter=node_id in quorum.voters if quorum.voters else node.controller,
                end=access.end(node_id) if state == "dead" else "",
            )
        asked = self._read_groups(metadata) if groups else Reading()
        return ClusterView(
            metadata.cluster_id,
            quorum.leader,
            quorum.epoch,
            brokers,
            _visible(metadata, internal),
            asked.groups,
            asked.silent,
            asked.ends,
            asked.share_groups,
        )

    def states(self) -> dict[int, BrokerState]:
        """Return the state of every node's process; see `Nodes.states`."""
        return {i: self._access.state(i) for i in self._access.nodes()}

    def acl_rules(self) -> dict[int, int]:
        """Return how many ACL rules each broker knows that is up. Raises `OSError` if one doesn't answer in time."""
        return {broker: self._ask(broker, BrokerConnection.acl_rules) for broker in self._brokers("up")}

    def features(self) -> dict[int, Features]:
        """Return the feature levels that each running broker knows; see `Nodes.features`."""
        return {broker: self._ask_until_answered(broker, BrokerConnection.features) for broker in self._brokers(*RUNNING)}

    def eligible_leaders(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Return eligible leader replicas by partition, as a broker that is up knows them; see `Nodes.eligible_leaders`."""
        broker = next(iter(self._brokers("up")))
        return self._ask_until_answered(broker, lambda connection: connection.eligible_leaders(topic))

    def share_group(self, id: str) -> ShareGroupView | None:
        """Return a share group; see `Nodes.share_group`."""
        running = map(self._access.control_address, self._brokers(*RUNNING))
        return read_share_group(id, running, lambda address: self.connect(address, _SHARE_GROUP_TIMEOUT))

    def _brokers(self, *states: BrokerState) -> list[int]:
        return [broker for broker in self._access.brokers() if self._access.state(broker) in states]

    # -- waiting ------------------------------------------------------------------------------------------------

    def wait_for(self, condition: Callable[[ClusterView], T], what: str, timeout: float, *, groups: bool = False) -> T:
        """Wait until the cluster shows something; see `Cluster.wait_for`."""
        view: ClusterView | WaitTimeout | None = None

        def look() -> T:
            nonlocal view
            try:
                view = first = self.describe(groups=groups)
            except WaitTimeout as silence:
                view = silence
                raise
            result = condition(first)
            for view in self._as_each_broker_knows(first) if result else ():
                if not (result := condition(view)):
                    break
            return result

        def last_seen() -> str:
            return "; ".join([str(view), *dict.fromkeys(self._ended_by_themselves())])  # a dead relay is every node's reason

        return wait_until(look, timeout, what, last_seen=last_seen, ignore=(KeyError, WaitTimeout))

    def _ended_by_themselves(self) -> Iterator[str]:
        """Say of each node that should run and doesn't why it ended."""
        for node_id in self._access.nodes():
            try:
                self._access.check_alive(node_id)
            except BrokerFailed as failed:
                yield str(failed).partition("\n")[0]

    def _as_each_broker_knows(self, view: ClusterView) -> Iterator[ClusterView]:
        """Yield the view with the topics that each broker knows, for all that are up: a client may ask any of them."""
        for broker in view.brokers_up:
            with contextlib.suppress(OSError):  # it doesn't answer clients either
                yield replace(view, topics=_visible(self._ask(broker, BrokerConnection.metadata)))

    def wait_until_ready(self, timeout: float, progress: Callable[[int, int], object] = lambda answering, of: None) -> None:
        """Wait until every broker is registered, a controller is active, and all brokers answer with the same metadata.

        Parameters
        ----------
        timeout
            Seconds to wait at most.
        progress
            Called with how many brokers have answered, and how many there are.

        Raises
        ------
        BrokerFailed
            When a node ends by itself meanwhile.
        WaitTimeout
            If they don't form one cluster in time.
        """
        access = self._access
        seen: object = "no broker answered yet"

        def ready() -> bool:
            nonlocal seen
            for node_id in access.nodes():
                access.check_alive(node_id)
            brokers = sorted(access.brokers())
            answers = {}
            for broker in brokers:
                answers[broker] = self._ask(broker, BrokerConnection.metadata)
                progress(len(answers), len(brokers))
            seen = {broker: sorted(answer.brokers) for broker, answer in answers.items()}
            topics = answers[brokers[0]].topics
            if any(set(a.brokers) != set(brokers) or a.topics != topics for a in answers.values()):
                return False
            seen = quorum = self._ask(brokers[0], BrokerConnection.quorum)
            return quorum.leader is not None or quorum.is_hidden

        what = "all brokers to be registered and to agree"
        wait_until(ready, timeout, what, last_seen=lambda: seen, ignore=(OSError,), interval=0.02)

    def wait_until_back(self, broker: int, timeout: float) -> None:
        """Wait until a node is a member again: registered, unfenced, and up to date with its peers.

        A broker that was paused or isolated answers at once, but with outdated metadata. It may still believe it leads
        partitions. So it must first read the metadata log up to the offset that was committed when the wait began.

        Raises
        ------
        BrokerFailed
            If the node ends by itself.
        BrokerNotRunning
            If a fault verb in another thread ends it.
        WaitTimeout
            If it isn't back in time.
        """
        access = self._access
        committed = -1
        seen: object = "no answer yet"

        def back() -> bool:
            nonlocal committed, seen
            self._require_open()
            if access.state(broker) not in _RUNS:
                access.check_alive(broker)  # raises with the reason, or has restarted the node on another port
                state = access.state(broker)
                if state not in _RUNS:
                    raise BrokerNotRunning(f"broker {broker} was ended ({state}) before it was ready")
            others = self._ask_any(but=broker) or self._ask_any()
            if others is None:
                return False
            metadata, quorum = others
            if committed < 0:
                committed = quorum.high_watermark
            seen = f"live brokers {sorted(metadata.brokers)}, {quorum}"
            if quorum.leader is None or quorum.end_offsets.get(broker, -1) < committed:
                return False
            if not access.nodes()[broker].broker:
                return True
            own = self._ask(broker, BrokerConnection.metadata)
            agree = own.brokers.keys() == metadata.brokers.keys() and own.topics == metadata.topics
            return broker in metadata.brokers and agree

        wait_until(back, timeout, f"broker {broker} to be back in the cluster", last_seen=lambda: seen, ignore=(OSError,))

    # -- questions ----------------------------------------------------------------------------------------------

    def _ask(self, broker: int, question: Callable[[BrokerConnection], T]) -> T:
        address = self._access.control_address(broker)
        with self._asking:
            self._require_open()
            connection = self._connections.get(broker)
            if connection is None or connection.address != address:
                connection = self._connections[broker] = self.connect(address)
            return question(connection)

    def _ask_until_answered(self, broker: int, question: Callable[[BrokerConnection], T]) -> T:
        """Ask again while there is no answer: a broker that has just started takes more than a connection's second."""
        return wait_until(lambda: self._ask(broker, question), 10, f"an answer from broker {broker}", ignore=(OSError,))

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise ClusterNotRunning("the cluster was stopped meanwhile")

    def connect(self, address: str, timeout: float = 1.0) -> BrokerConnection:
        """Open a new connection to a broker at ``host:port`` on first use. The timeout applies to each response."""
        return BrokerConnection(address, timeout, login_from(self._access.client_settings()))

    def _ask_any(self, *, but: int | None = None) -> tuple[Metadata, Quorum] | None:
        """Return what a broker (other than `but`) knows, or None while brokers that may know are slow to answer.

        An isolated broker answers with outdated metadata, and so does one that is back but not registered yet. Such an
        answer counts only if no broker with newer metadata is reachable. `but` itself may have it, so with `but` no
        isolated broker is asked.

        A broker that names no active controller may just have been too slow to hear from it. If the one that was seen
        last is up, the others are asked, too.
        """
        self._require_open()
        access = self._access
        states = {i: access.state(i) for i in access.brokers() if i != but}
        leaderless, outdated, slow = None, None, False
        for broker in sorted((i for i in states if states[i] in RUNNING), key=lambda i: states[i] == "isolated"):
            if states[broker] == "isolated" and (leaderless or outdated or slow or but is not None):
                break
            try:
                metadata, quorum = self._ask(broker, _metadata_and_quorum)
            except ConnectionRefusedError:
                continue
            except OSError:
                slow = True
                continue
            if broker not in metadata.brokers or states[broker] == "isolated":
                outdated = outdated or (metadata, quorum)
            elif quorum.leader is None and self._controller is not None and access.state(self._controller) == "up":
                leaderless = leaderless or (metadata, quorum)
            else:
                self._controller = quorum.leader
                return metadata, quorum
        if leaderless:
            self._controller = None  # nobody knows one: next time the first answer will do
            return leaderless
        return None if slow else outdated

    def _read_groups(self, metadata: Metadata) -> Reading:
        access = self._access
        brokers = {b: access.control_address(b) for b in metadata.brokers if b in access.nodes()}
        return self._groups.read(brokers, [p for partitions in metadata.topics.values() for p in partitions], metadata.internal)


def _visible(metadata: Metadata, internal: bool = False) -> dict[str, tuple[PartitionView, ...]]:
    return {name: parts for name, parts in metadata.topics.items() if internal or name not in metadata.internal}


def _metadata_and_quorum(connection: BrokerConnection) -> tuple[Metadata, Quorum]:
    metadata = connection.metadata()
    try:
        return metadata, connection.quorum()
    except OSError:
        return metadata, NO_QUORUM
