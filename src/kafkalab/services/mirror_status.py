"""The states of MirrorMaker's connectors and tasks, from the status topic that Connect writes in each target cluster."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, Message, TopicPartition

from kafkalab.cluster import Cluster
from kafkalab.cluster.offsets import end_offsets
from kafkalab.services.traces import innermost_cause

__all__ = ["CONNECTORS", "Flow", "StatusReader"]

CONNECTORS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
"""The connectors that MirrorMaker runs for each flow."""

_KEY = re.compile(r"status-(connector|task)-(\w+?)(?:-(\d+))?")
_PATIENCE = 0.05  # seconds to wait for records


@dataclass(frozen=True)
class Flow:
    """The direction in which MirrorMaker copies topics. As text, it's as in MirrorMaker's settings: ``source->target``."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def status_topic(self) -> str:
        """Return the topic in the target cluster where Connect keeps the states of this flow."""
        return f"mm2-status.{self.source}.internal"

    def connectors(self) -> list[str]:
        """Return the names of its connectors, as in `StatusReader.states`."""
        return [f"{self} {connector}" for connector in CONNECTORS]


class StatusReader:
    """Reads the states that Connect writes from now on.

    Parameters
    ----------
    clusters, flows
        MirrorMaker's own.
    """

    def __init__(self, clusters: Mapping[str, Cluster], flows: Iterable[Flow]) -> None:
        self._flows = {flow: clusters[flow.target] for flow in flows}
        self._consumers: dict[Flow, Consumer] = {}
        self._begin = {flow: end_offsets(cluster, flow.status_topic) for flow, cluster in self._flows.items()}
        self._said: dict[str, tuple[str, str]] = {}  # name → state, trace
        self._reading = threading.Lock()

    def states(self) -> dict[str, str]:
        """Return the last known state of each connector and task, by name."""
        with self._reading:
            self._read_on()
            return {name: state for name, (state, _) in sorted(self._said.items())}

    def failures(self) -> dict[str, str]:
        """Return why connectors and tasks failed, by name, if their last state is FAILED."""
        with self._reading:
            self._read_on()
            return {name: innermost_cause(trace) for name, (state, trace) in sorted(self._said.items()) if state == "FAILED"}

    def close(self) -> None:
        """Close the connections."""
        with self._reading:
            for consumer in self._consumers.values():
                consumer.close()
            self._consumers.clear()

    def _read_on(self) -> None:
        for flow, cluster in self._flows.items():
            consumer = self._consumers.get(flow) or self._connect(flow, cluster)
            while consumer is not None and (messages := consumer.consume(100, _PATIENCE)):
                for message in messages:
                    self._take_in(flow, message)

    def _connect(self, flow: Flow, cluster: Cluster) -> Consumer | None:
        partitions = [p.partition for p in cluster.describe(groups=False, internal=True).topics.get(flow.status_topic, ())]
        if not partitions:
            return None  # Connect hasn't created it yet
        # A group id is required, but no group is joined and nothing is committed.
        settings = cluster.client_config(group_id=f"status-{uuid.uuid4().hex[:6]}", enable_auto_commit=False)
        consumer = self._consumers[flow] = Consumer(settings)
        consumer.assign([TopicPartition(flow.status_topic, p, self._begin[flow].get(p, 0)) for p in partitions])
        return consumer

    def _take_in(self, flow: Flow, message: Message) -> None:
        if message.error() is not None or not (key := _KEY.fullmatch((message.key() or b"").decode())):
            return
        _, connector, task = key.groups()
        name = f"{flow} {connector}" + (f" task {task}" if task else "")
        value = message.value()
        if value is None:  # removed
            self._said.pop(name, None)
        else:
            state = json.loads(value)
            self._said[name] = state["state"], state.get("trace") or ""
