"""A console consumer in a process of its own."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from kafkalab.waiting import wait_until
from kafkalab.workers.settings import CONSUMER, GROUP_MEMBER, combine
from kafkalab.workers.topics import partitions_of
from kafkalab.workers.worker import Worker

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["ConsoleConsumer", "Record", "wait_until_shared"]


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was read: its place in the log, and its key and value as text."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: str | None


class Reading:
    """What a consumer has read, owns and has committed.

    Attributes
    ----------
    records
        All records, in the order it read them.
    assigned
        The partitions that it owns.
    committed
        The offsets that it committed.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.assigned: set[tuple[str, int]] = set()
        self.committed: dict[tuple[str, int], int] = {}
        self._before: dict[tuple[str, int], int] = {}  # how many records it had read when it got a partition

    def assign(self, partitions: set[tuple[str, int]]) -> None:
        """Note which partitions it owns from now on."""
        self._before |= dict.fromkeys(partitions - self.assigned, len(self.records))
        self.assigned = partitions

    def uncommitted(self) -> dict[tuple[str, int], int]:
        """Return the offsets that it hasn't committed yet, of what it has read of its partitions since they were assigned.

        What it read before is none of its business any more: it begins where the group has committed.
        """
        following = {
            (r.topic, r.partition): r.offset + 1
            for number, r in enumerate(self.records)
            if number >= self._before.get((r.topic, r.partition), 0)
        }
        return {
            place: offset
            for place, offset in following.items()
            if place in self.assigned and self.committed.get(place, 0) < offset
        }


class ConsoleConsumer(Worker):
    """Show each record it reads, like ``kafka-console-consumer``.

    It joins its group in the background. Wait for that with `wait_assigned`. (With `partitions`, it's assigned at
    once.) Once assigned, it reads every record sent from then on. It commits what it read within a tenth of a second.

    Parameters
    ----------
    cluster
        A running cluster.
    topic
        An existing topic.
    group
        Consumer group. By default a group of its own.
    from_beginning
        If the group has no committed offset: start with the first record (``auto.offset.reset=earliest``), not with the
        next new one (``latest``).
    name
        Name of the worker. By default ``consumer-1``, ``consumer-2`` …
    partitions
        Read these partitions, without a group and without commits: ``assign`` instead of ``subscribe``.
    show_offsets
        Start each line with the record's place: ``p3@17`` is offset 17 of partition 3.
    **settings
        librdkafka settings, with underscores for dots: ``max_poll_interval_ms=10_000``. Defaults are librdkafka's,
        except that ``session.timeout.ms`` is 3000 and ``heartbeat.interval.ms`` 500, so the group soon notices a killed
        member.
    """

    _KIND = "consumer"
    _MODULE = "kafkalab.workers.consumer_process"
    _farewell = "left the group"

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        group: str | None = None,
        from_beginning: bool = False,
        name: str | None = None,
        partitions: Iterable[int] | None = None,
        show_offsets: bool = False,
        **settings: object,
    ) -> None:
        settings = combine(settings)
        wanted = None if partitions is None else tuple(partitions)
        if wanted is not None and group is not None:
            raise ValueError("a consumer either joins a group or reads the partitions it is given, not both")
        self.group = group or f"console-consumer-{uuid.uuid4().hex[:8]}"
        self._show_offsets = show_offsets
        self._reading = Reading()
        reset = "earliest" if from_beginning else "latest"
        defaults = combine(CONSUMER, _membership(cluster, settings), {"group.id": self.group, "auto.offset.reset": reset})
        if wanted is not None:
            self._farewell = "closed"
            defaults["enable.auto.commit"] = False
        start = {
            "partitions": wanted,
            "reset": str(settings.get("auto.offset.reset", reset)),
            "cooperative": _is_cooperative(settings),
        }
        super().__init__(cluster, topic, name=name, partitions=wanted or (), defaults=defaults, settings=settings, start=start)

    @property
    def records(self) -> list[Record]:
        """All records read so far, in the order it read them."""
        return list(self._reading.records)

    @property
    def values(self) -> list[str | None]:
        """The values of all records read so far."""
        return [record.value for record in self._reading.records]

    @property
    def assigned(self) -> set[tuple[str, int]]:
        """Topic and number of each partition assigned to it now; empty after it ended."""
        return set(self._reading.assigned) if self.alive else set()

    @property
    def committed(self) -> dict[tuple[str, int], int]:
        """Offsets that this consumer committed, by topic and partition. Each is the next offset to read."""
        return dict(self._reading.committed)

    def wait_for(self, wanted: int | str | Iterable[str], timeout: float = 30.0) -> list[str | None]:
        """Wait until it has read this many records, or all of these values.

        Parameters
        ----------
        wanted
            The number of records since its start; or values, each as many times as it must be read.
        timeout
            Seconds to wait at most.

        Returns
        -------
        list
            The values of all records read so far.

        Raises
        ------
        WaitTimeout
            If time runs out. The message shows what was read.
        WorkerClosed
            If the consumer ended before that.
        """
        if isinstance(wanted, int):
            self._wait(
                lambda: len(self._reading.records) >= wanted, timeout, f"{self.name} to read {wanted} records", self._seen
            )
        else:
            values = Counter([wanted] if isinstance(wanted, str) else wanted)
            self._wait(
                lambda: values <= Counter(self.values),
                timeout,
                f"{self.name} to read {list(values.elements())}",
                self._seen,
            )
        return self.values

    def wait_assigned(self, n: int = 1, timeout: float = 30.0) -> set[tuple[str, int]]:
        """Wait until it has at least `n` assigned partitions, and return them.

        Raises
        ------
        WaitTimeout, WorkerClosed
        """
        self._wait(
            lambda: len(self._reading.assigned) >= n,
            timeout,
            f"{self.name} to own {n} partitions",
            lambda: f"partitions {sorted(p for _, p in self._reading.assigned)}",
        )
        return self.assigned

    def wait_committed(self, timeout: float = 30.0) -> dict[tuple[str, int], int]:
        """Wait until it has committed all it read from its assigned partitions, and return the committed offsets.

        If you kill it after that, no record is read twice.

        Raises
        ------
        WaitTimeout, WorkerClosed
        """
        self._wait(
            lambda: not self._reading.uncommitted(),
            timeout,
            f"{self.name} to commit what it read",
            lambda: f"not yet committed: {self._reading.uncommitted()}",
        )
        return self.committed

    def _seen(self) -> str:
        values = self.values
        shown = f"{len(values)} records, the last ones {values[-10:]}" if values else "no record"
        return f"{shown}; owns partitions {sorted(p for _, p in self._reading.assigned)}"

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        match kind:
            case "records":
                records = [Record(*fields) for fields in event["records"]]
                self._reading.records += records
                self._say(*map(self._line, records))
            case "assigned":
                self._reading.assign({(topic, partition) for topic, partition in event["partitions"]})
            case "committed":
                self._reading.committed |= {(topic, partition): offset for topic, partition, offset in event["offsets"]}

    def _line(self, record: Record) -> str:
        value = "null" if record.value is None else record.value  # the console tool shows a tombstone like this
        return f"p{record.partition}@{record.offset} {value}" if self._show_offsets else value


def wait_until_shared(*consumers: ConsoleConsumer, timeout: float = 30.0) -> dict[str, set[int]]:
    """Wait until these consumers of one group divide all partitions of their topic.

    That means: all have joined, each partition is assigned to exactly one of them, and none is idle unless there are
    more consumers than partitions.

    Returns
    -------
    dict
        Partitions by consumer name.

    Raises
    ------
    WaitTimeout, UnknownTopic
    """
    cluster, topic = consumers[0].cluster, consumers[0].topic
    every = wait_until(lambda: partitions_of(cluster, topic), timeout, f"the partitions of {topic}", ignore=(KafkaException,))

    def owned() -> dict[str, set[int]]:
        return {c.name: {p for _, p in c.assigned} for c in consumers}

    def shared() -> dict[str, set[int]]:
        if len(consumers) > len(every) and not all_joined():
            return {}
        by_name = owned()
        numbers = sorted(p for partitions in by_name.values() for p in partitions)
        busy = sum(bool(partitions) for partitions in by_name.values())
        return by_name if numbers == sorted(every) and busy == min(len(consumers), len(every)) else {}

    def all_joined() -> bool:
        # A consumer without partitions may be idle or not have joined yet: the new protocol tells it neither.
        group = cluster.describe().groups.get(consumers[0].group)
        return group is not None and group.state == "Stable" and len(group.members) == len(consumers)

    names = ", ".join(c.name for c in consumers)
    return wait_until(shared, timeout, f"{names} to share {len(every)} partitions", last_seen=owned, interval=0.02)


def _is_cooperative(settings: dict[str, object]) -> bool:
    return "cooperative" in str(settings.get("partition.assignment.strategy", "")) or _on_new_protocol(settings)


def _on_new_protocol(settings: dict[str, object]) -> bool:
    return str(settings.get("group.protocol", "classic")).lower() == "consumer"


def _membership(cluster: Cluster, settings: dict[str, object]) -> dict[str, object]:
    if _on_new_protocol(settings):
        return {}  # with the new protocol the broker decides, and librdkafka rejects these settings
    if cluster.nodes.backend == "attached":
        return {**GROUP_MEMBER, "session.timeout.ms": 6000}  # the minimum that brokers accept by default
    return dict(GROUP_MEMBER)
