"""What a cluster did while somebody broke it, as a file that the site plays. ``record_failover.py`` writes one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kafkalab.cluster import BrokerView, ClusterView, PartitionView
from kafkalab.widgets.timeline_drawing import Ack, Mark

__all__ = ["Moment", "Recording"]

_SOMEWHERE = "host:port"  # a view's brokers have addresses; those of the recording's machine are nobody's business


@dataclass(frozen=True)
class Moment:
    """What the map showed from a moment on: seconds since the recording's first acknowledgement, and what happened then."""

    at: float
    view: ClusterView
    events: tuple[str, ...]


@dataclass(frozen=True)
class Recording:
    """A run's maps and acknowledgements.

    Attributes
    ----------
    moments
        What the map showed, in order.
    acks, marks
        What the timeline showed, in seconds since the first acknowledgement.
    """

    moments: Sequence[Moment]
    acks: Sequence[Ack]
    marks: Sequence[Mark]

    @property
    def seconds(self) -> float:
        """Its length."""
        return max(ack.at for ack in self.acks)

    def write(self, path: Path) -> None:
        """Store it in a file, a line for each moment and each partition's acknowledgements in milliseconds."""
        by_partition: dict[int, list[int]] = {}
        for ack in sorted(self.acks, key=lambda ack: ack.at):
            by_partition.setdefault(ack.partition, []).append(round(ack.at * 1000))
        moments = [json.dumps(_written(moment), separators=(",", ":")) for moment in self.moments]
        acks = json.dumps(dict(sorted(by_partition.items())), separators=(",", ":"))
        marks = json.dumps([asdict(mark) for mark in self.marks])
        lines = ",\n".join(moments)
        path.write_text(f'{{"moments": [\n{lines}],\n"acks": {acks},\n"marks": {marks}}}\n', encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Return what a file holds."""
        stored = json.loads(path.read_bytes())
        return cls(
            [_read(moment) for moment in stored["moments"]],
            [Ack(at / 1000, int(partition)) for partition, times in stored["acks"].items() for at in times],
            [Mark(**mark) for mark in stored["marks"]],
        )


def _written(moment: Moment) -> dict[str, Any]:
    view = moment.view
    return {
        "at": round(moment.at, 2),
        "events": moment.events,
        "controller": view.controller,
        "brokers": [[broker.id, broker.state] for broker in view.brokers.values()],
        "topics": {
            name: [[p.leader, p.leader_epoch, p.replicas, p.isr] for p in partitions]
            for name, partitions in view.topics.items()
        },
    }


def _read(stored: dict[str, Any]) -> Moment:
    controller = stored["controller"]
    brokers = {id_: BrokerView(id_, _SOMEWHERE, None, state, id_ == controller, True) for id_, state in stored["brokers"]}
    topics = {
        name: tuple(
            PartitionView(name, number, leader, epoch, tuple(replicas), tuple(isr))
            for number, (leader, epoch, replicas, isr) in enumerate(partitions)
        )
        for name, partitions in stored["topics"].items()
    }
    return Moment(stored["at"], ClusterView("", controller, 0, brokers, topics), tuple(stored["events"]))
