"""A console share consumer in a process of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kafkalab.workers.settings import combine
from kafkalab.workers.worker import Worker

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["ConsoleShareConsumer", "Delivery"]

Answer = Literal["accept", "release", "reject", "hold"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record that a share group delivered to this consumer. `count` is the delivery count, this one included."""

    topic: str
    partition: int
    offset: int
    value: str | None
    count: int


class ConsoleShareConsumer(Worker):
    """Show each record that its share group delivers to it, like ``kafka-console-share-consumer``.

    It joins its group in the background. It takes one batch at a time.

    Parameters
    ----------
    cluster
        A running cluster.
    topic
        An existing topic.
    group
        The share group. The group's own setting ``share.auto.offset.reset`` decides where it starts.
    answer
        How it acknowledges each record: ``"accept"``, ``"release"`` or ``"reject"``. With ``"hold"`` it keeps the first
        batch it gets, and never acknowledges it.
    name
        Name of the worker. By default ``share-consumer-1``, ``share-consumer-2`` …
    **settings
        librdkafka settings, with underscores for dots.
    """

    _KIND = "share-consumer"
    _MODULE = "kafkalab.workers.share_consumer_process"
    _farewell = "left the group"

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        group: str,
        answer: Answer = "accept",
        name: str | None = None,
        **settings: object,
    ) -> None:
        self.group = group
        self._deliveries: list[Delivery] = []
        defaults = {"group.id": group, "share.acknowledgement.mode": "explicit", "max.poll.records": 1}
        super().__init__(cluster, topic, name=name, defaults=defaults, settings=combine(settings), start={"answer": answer})

    @property
    def deliveries(self) -> list[Delivery]:
        """All records delivered to it so far, in order."""
        return list(self._deliveries)

    @property
    def values(self) -> list[str | None]:
        """The values of all records delivered so far."""
        return [delivery.value for delivery in self._deliveries]

    def wait_for(self, wanted: int | Iterable[str], timeout: float = 30.0) -> list[str | None]:
        """Wait until it got this many records, or all of these values, and return the values of all so far.

        Raises
        ------
        WaitTimeout, WorkerClosed
        """
        values = Counter[str | None]() if isinstance(wanted, int) else Counter[str | None](wanted)
        number = wanted if isinstance(wanted, int) else values.total()

        self._wait(
            lambda: len(self._deliveries) >= number and values <= Counter(self.values),
            timeout,
            f"{self.name} to be handed {number} records",
            lambda: str(self.values),
        )
        return self.values

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        for fields in event["records"]:
            delivery = Delivery(*fields)
            self._deliveries.append(delivery)
            self._say(f"{delivery.value} (delivery {delivery.count})")
