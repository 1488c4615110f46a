"""``python tools/record_failover.py``: kill a broker as chapter 02 does, start it again, and store what the cluster did.

The site plays that below the chapter's timeline (see ``player.py``). It takes half a minute. Do it again when the map or the
timeline shows something new.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, LedgerProducer
from kafkalab.cluster import ClusterView
from kafkalab.widgets.events import Event
from kafkalab.widgets.timeline_drawing import Ack, Mark
from kafkalab.widgets.watcher import Watcher
from recording import Moment, Recording

TARGET = Path(__file__).parents[1] / "docs/site/recordings/failover.json"
TOPIC = "ledger"
_PATIENCE = 60  # seconds


class Recorder:
    """Notes what a cluster's watcher sees."""

    def __init__(self) -> None:
        self.seen_at: list[tuple[float, ClusterView, list[Event]]] = []

    def seen(self, view: ClusterView, events: Sequence[Event], fresh: bool) -> None:
        """Note a change. Only events have a time."""
        if events:
            self.seen_at.append((max(event.at for event in events), view, list(events)))

    def ended(self) -> None:
        """There's nothing more to do."""


def record() -> Recording:
    """Break a cluster, and return what it did."""
    with Cluster(brokers=3) as cluster:
        admin = AdminClient(cluster.client_config())
        admin.create_topics([NewTopic(TOPIC, 3, 3, config={"min.insync.replicas": "2"})])[TOPIC].result()
        before = cluster.wait_for(lambda view: view if view.in_sync(TOPIC) else None, "the topic")
        recorder = Recorder()
        Watcher.of(cluster).observe(recorder, groups=False)
        ledger = LedgerProducer(cluster, TOPIC, rate=200, acks="all", name=TOPIC, **{"enable.idempotence": True})
        ledger.wait_for(500, timeout=_PATIENCE)
        cluster.kill(2)
        cluster.wait_for(lambda view: view.moved_from(TOPIC, 2), "new leaders", timeout=_PATIENCE)
        ledger.wait_for(ledger.acknowledged + 300, timeout=_PATIENCE)
        cluster.restart(2)
        cluster.wait_for(lambda view: view.in_sync(TOPIC), "complete ISRs", timeout=_PATIENCE)
        ledger.wait_for(ledger.acknowledged + 300, timeout=_PATIENCE)
        ledger.stop()
        acks = [Ack(entry["at"], entry["partition"]) for entry in map(json.loads, ledger.ledger.read_text().splitlines())]
        faults = list(cluster.nodes.faults)
    began = min(ack.at for ack in acks)
    moments = [Moment(0.0, before, ())]
    leaders = []
    for at, view, events in recorder.seen_at:
        if at >= began:
            moments.append(Moment(at - began, view, tuple(event.text for event in events)))
            leaders += [event.at - began for event in events if event.kind == "leader"]
    return Recording(
        moments,
        [Ack(ack.at - began, ack.partition) for ack in acks],
        [
            *(Mark(round(fault.at - began, 2), "fault", f"{fault.verb} {fault.broker}") for fault in faults),
            *(Mark(round(at, 2), "leader", "new leaders") for at in dict.fromkeys(leaders)),
        ],
    )


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    record().write(TARGET)
    print(f"written: {TARGET.relative_to(TARGET.parents[3])}")
