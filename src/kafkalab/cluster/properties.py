"""From a spec to ``server.properties``: the one place that knows Kafka's broker settings, for every back end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkalab.cluster.spec import CONTROLLER, INTERNAL, OBSERVER_LISTENER, ClusterSpec, Node
from kafkalab.security.authority import Identity
from kafkalab.security.keyring import KeyRing
from kafkalab.settings import as_text

__all__ = ["LESSON_SETTINGS", "TIER_FOLDER", "Endpoint", "Tier", "node_properties"]

LESSON_SETTINGS: Mapping[str, str] = {
    # A crashed broker is fenced after 1.7 s instead of 9 s, a lost quorum leader missed after 0.8 s instead of 2 s.
    "broker.session.timeout.ms": "1700",
    "broker.heartbeat.interval.ms": "300",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "200",
    # A broker passes clients' requests on to the active controller, one at a time. When that one is cut off, it gives up after
    # 3 s instead of 30 s, and asks the new one.
    "controller.socket.timeout.ms": "3000",
    # Groups start and repair themselves without the waits that suit large deployments.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # Leaders move back only when a lesson asks for it.
    "auto.leader.rebalance.enable": "false",
    # Internal topics of a size that fits a few records.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    # Kafka lays index files out at full size, 10 MB each by default: a copy of a node's folder would be gigabytes.
    "log.index.size.max.bytes": "1048576",
    # A laptop's worth of threads and memory; with a small heap the cleaner's default buffer cannot be had.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    # The active controller writes an empty record when this long nothing happened (default 0.5 s), and all nodes read it: a
    # sixth of what idle brokers take of a processor.
    "metadata.max.idle.interval.ms": "5000",
    "log.cleaner.dedupe.buffer.size": "4194304",
}
"""Where the lessons' clusters differ from Kafka's defaults."""


TIER_FOLDER = "kafka-tiered-storage"
"""The folder, within its own, in which `LocalTieredStorage` keeps a folder for each partition."""

_TIER_SETTINGS: Mapping[str, str] = {
    "remote.log.storage.system.enable": "true",
    # Kafka's own tests have it: each file of a segment becomes a file in a folder.
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.metadata.manager.listener.name": INTERNAL,
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    # A laptop's worth of threads, as above.
    "remote.log.manager.thread.pool.size": "2",
    "remote.log.manager.copier.thread.pool.size": "2",
    "remote.log.manager.expiration.thread.pool.size": "2",
    "remote.log.reader.threads": "2",
}


@dataclass(frozen=True)
class Tier:
    """The remote tier as a node finds it: the jars of what looks after it, and a folder that all nodes share."""

    jars: Sequence[str]
    folder: str


@dataclass(frozen=True)
class Endpoint:
    """Where a node listens, and under which address others find it; both as ``host:port``."""

    listener: str
    bind: str
    advertised: str


def node_properties(
    spec: ClusterSpec,
    node: Node,
    endpoints: Sequence[Endpoint],
    voters: Mapping[int, str],
    log_dir: str,
    secured: tuple[KeyRing, Identity] | None = None,
    changed: Mapping[str, str] | None = None,
    tier: Tier | None = None,
) -> dict[str, str]:
    """Settings of one node.

    Parameters
    ----------
    spec, node
        What is wanted.
    endpoints
        The node's listeners: those of the spec and `INTERNAL` for a broker, `CONTROLLER` for a controller.
    voters
        ``host:port`` of the controller listener of each voter that the cluster begins with, as this node reaches it. A
        controller that isn't one of them finds the quorum there, and follows it as an observer.
    log_dir
        The node's data folder.
    secured
        The cluster's key ring and the node's certificate, if the spec says that it is secured.
    changed
        What `Cluster.restart` was given for this node.
    tier
        The remote tier, if the spec says that there is one.

    Returns
    -------
    dict
        What kafkalab needs, then the lesson settings, then the spec's own settings: a later one wins. What was changed for this
        node comes last.
    """
    roles = [role for role, has in (("broker", node.broker), ("controller", node.controller)) if has]
    copies = str(min(3, spec.brokers))
    in_sync = str(min(2, spec.brokers))
    needed = {
        "process.roles": ",".join(roles),
        "node.id": str(node.id),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join(f"{e.listener}://{e.bind}" for e in endpoints),
        "advertised.listeners": ",".join(f"{e.listener}://{e.advertised}" for e in endpoints),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in _protocols(spec).items()),
        "inter.broker.listener.name": INTERNAL,
        "log.dirs": log_dir,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
    }
    if node.controller and node.id not in voters:
        needed["controller.quorum.bootstrap.servers"] = ",".join(voters.values())
    else:
        needed["controller.quorum.voters"] = ",".join(f"{i}@{address}" for i, address in voters.items())
    if node.rack is not None:
        needed["broker.rack"] = node.rack
    if secured is not None:
        keyring, identity = secured
        protocols = {x.name: x.protocol for x in spec.listeners}
        needed |= keyring.node_settings(identity, protocols, between_brokers=INTERNAL, among_controllers=CONTROLLER)
    if tier is not None:
        needed |= {
            **_TIER_SETTINGS,
            "remote.log.storage.manager.class.path": os.pathsep.join(tier.jars),
            "rsm.config.dir": tier.folder,
            "rlmm.config.remote.log.metadata.topic.replication.factor": copies,
        }
    for listener in spec.listeners:
        needed |= {f"listener.name.{listener.name.lower()}.{k}": v for k, v in as_text(listener.settings).items()}
    return {**needed, **LESSON_SETTINGS, **as_text(spec.settings), **(changed or {})}


def _protocols(spec: ClusterSpec) -> dict[str, str]:
    protocols: dict[str, str] = {x.name: x.protocol for x in spec.listeners}
    if spec.security is None:
        return {**protocols, INTERNAL: "PLAINTEXT", CONTROLLER: "PLAINTEXT"}
    between = "SSL" if spec.security.between_brokers == "SSL" else "SASL_SSL"
    return {**protocols, OBSERVER_LISTENER: "SSL", INTERNAL: between, CONTROLLER: "SSL"}
