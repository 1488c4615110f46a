"""Turn a spec into ``server.properties``. All broker settings are here, except those that `KeyRing` adds for security."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkalab.cluster.spec import CONTROLLER, INTERNAL, OBSERVER_LISTENER, ClusterSpec, Node
from kafkalab.cluster.tier_jars import TRANSFERER
from kafkalab.security.authority import Identity
from kafkalab.security.keyring import KeyRing
from kafkalab.settings import as_text

__all__ = ["LESSON_SETTINGS", "TIER_FOLDER", "Endpoint", "Placement", "node_properties"]

LESSON_SETTINGS: Mapping[str, str] = {
    # A crashed broker is fenced after 1.7 s (default 9 s), and a lost quorum leader noticed after 0.8 s (default 2 s).
    "broker.session.timeout.ms": "1700",
    "broker.heartbeat.interval.ms": "300",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "200",
    # A broker forwards clients' requests to the active controller, one at a time. If that controller is isolated, the
    # broker gives up after 3 s instead of 30 s, and asks the new one.
    "controller.socket.timeout.ms": "3000",
    # Groups start and rebalance without the delays that suit large deployments.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # Leaders move back only on request.
    "auto.leader.rebalance.enable": "false",
    # Internal topics only need a size for a few records.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    # Kafka allocates index files at full size, 10 MB each by default: a copy of a node's folder would take gigabytes.
    "log.index.size.max.bytes": "1048576",
    # Threads and memory for a laptop. The cleaner's default buffer doesn't fit into a small heap.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    # Without other records, the active controller writes an empty record at this interval (default 0.5 s), and all
    # nodes read it. The default causes a sixth of an idle broker's processor time.
    "metadata.max.idle.interval.ms": "5000",
    "log.cleaner.dedupe.buffer.size": "4194304",
}
"""The settings in which the course's clusters differ from Kafka's defaults."""

_ALONE: Mapping[str, str] = {
    # Nobody takes over from an only broker, so it needn't be fenced soon. A busy machine can keep it from a heartbeat for more
    # than 1.7 s, and a fenced broker takes no new topic. After a kill, its next start waits for this time.
    "broker.session.timeout.ms": "3000",
}

_AFTER_LOST_PACKETS: Mapping[str, str] = {
    # A node whose connection attempts got no answer tries again soon after it's healed.
    "socket.connection.setup.timeout.ms": "1000",
    "socket.connection.setup.timeout.max.ms": "2000",
}

TIER_FOLDER = "kafka-tiered-storage"
"""The folder, inside its own, where `LocalTieredStorage` keeps a folder per partition."""

_TIER_SETTINGS: Mapping[str, str] = {
    "remote.log.storage.system.enable": "true",
    # From Kafka's own tests: each file of a segment becomes a file in a folder.
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.metadata.manager.listener.name": INTERNAL,
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    # Threads for a laptop, as above.
    "remote.log.manager.thread.pool.size": "2",
    "remote.log.manager.copier.thread.pool.size": "2",
    "remote.log.manager.expiration.thread.pool.size": "2",
    "remote.log.reader.threads": "2",
}


@dataclass(frozen=True)
class Endpoint:
    """Where a node listens, and the address where others find it, both as ``host:port``."""

    listener: str
    bind: str
    advertised: str


@dataclass(frozen=True)
class Placement:
    """What a node finds around it, as the node itself sees it.

    Attributes
    ----------
    endpoints
        The node's listeners: those of the spec and `INTERNAL` for a broker, `CONTROLLER` for a controller.
    voters
        ``host:port`` of the controller listener of each initial voter, as this node reaches it. Any other controller
        finds the quorum there, and follows it as an observer.
    log_dir
        The node's data folder.
    tier_folder, tier_jars
        The remote tier, if the spec has one: a folder that all nodes share, and the jars of its storage manager.
    loses_packets
        Whether connection attempts of an isolated node get no answer. Otherwise they're held back, as with a relay.
    """

    endpoints: Sequence[Endpoint]
    voters: Mapping[int, str]
    log_dir: str
    tier_folder: str
    tier_jars: Sequence[str]
    loses_packets: bool = False


def node_properties(
    spec: ClusterSpec, node: Node, placement: Placement, secured: tuple[KeyRing, Identity] | None, changed: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of one node.

    They are what kafkalab needs, then the course's settings, then the spec's own settings, and last the changes for this
    node. A later one wins.

    Parameters
    ----------
    spec, node, placement
        The cluster's spec, one of its nodes, and where that node runs.
    secured
        The cluster's key ring and the node's certificate, if the spec has security.
    changed
        Settings from `Cluster.restart` for this node.
    """
    roles = [role for role, has in (("broker", node.broker), ("controller", node.controller)) if has]
    copies = str(min(3, spec.brokers))
    in_sync = str(min(2, spec.brokers))
    needed = {
        **(_AFTER_LOST_PACKETS if placement.loses_packets else {}),
        "process.roles": ",".join(roles),
        "node.id": str(node.id),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join(f"{e.listener}://{e.bind}" for e in placement.endpoints),
        "advertised.listeners": ",".join(f"{e.listener}://{e.advertised}" for e in placement.endpoints),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in _protocols(spec).items()),
        "inter.broker.listener.name": INTERNAL,
        "log.dirs": placement.log_dir,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
    }
    if node.controller and node.id not in placement.voters:
        needed["controller.quorum.bootstrap.servers"] = ",".join(placement.voters.values())
    else:
        needed["controller.quorum.voters"] = ",".join(f"{i}@{address}" for i, address in placement.voters.items())
    if node.rack is not None:
        needed["broker.rack"] = node.rack
    if secured is not None:
        keyring, identity = secured
        protocols = {x.name: x.protocol for x in spec.listeners}
        needed |= keyring.node_settings(identity, protocols, between_brokers=INTERNAL, among_controllers=CONTROLLER)
    if spec.tiered_storage:
        needed |= {
            **_TIER_SETTINGS,
            "remote.log.storage.manager.class.path": os.pathsep.join(placement.tier_jars),
            "rsm.config.dir": placement.tier_folder,
            "rsm.config.transferer.class": TRANSFERER,
            "rlmm.config.remote.log.metadata.topic.replication.factor": copies,
        }
    for listener in spec.listeners:
        needed |= {f"listener.name.{listener.name.lower()}.{k}": v for k, v in as_text(listener.settings).items()}
    alone = _ALONE if spec.brokers == 1 else {}
    return {**needed, **LESSON_SETTINGS, **alone, **as_text(spec.settings), **changed}


def _protocols(spec: ClusterSpec) -> dict[str, str]:
    protocols: dict[str, str] = {x.name: x.protocol for x in spec.listeners}
    if spec.security is None:
        return {**protocols, INTERNAL: "PLAINTEXT", CONTROLLER: "PLAINTEXT"}
    between = "SSL" if spec.security.between_brokers == "SSL" else "SASL_SSL"
    return {**protocols, OBSERVER_LISTENER: "SSL", INTERNAL: between, CONTROLLER: "SSL"}
