# Written in the lab 04_priority.
"""Assign a reader to each partition by hand, with more workers for the important one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from kafkacourse.stocks.book import following
from kafkacourse.stocks.coordinator import NOT_READY
from kafkacourse.stocks.topics import partition_count

__all__ = ["PartitionReader", "readers"]

_BATCH = 50


class PartitionReader(threading.Thread):
    """Read one partition with several workers, each record at least once.

    No other reader takes over when this one dies, and nothing stops a second reader from reading the same partition.
    The code that starts readers has to see to both. The workers divide a batch by key, so the records of a key stay in
    order. The reader commits a batch when all of it is processed.

    Parameters
    ----------
    settings
        The consumer's settings, with ``enable.auto.commit=False`` and a ``group.id``. The reader doesn't join that
        group, but committed offsets need its name.
    topic, partition
        What to read, from the committed offset.
    handle
        Called with each record, by several threads at once.
    workers
        The number of threads. More threads than keys in the partition don't help.
    """

    def __init__(
        self, settings: Mapping[str, object], topic: str, partition: int, handle: Callable[[Message], None], workers: int = 1
    ) -> None:
        super().__init__(name=f"{topic}-{partition}", daemon=True)
        self.partition = partition
        self.workers = workers
        self._settings = dict(settings)
        self._topic = topic
        self._handle = handle
        self._stopping = threading.Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Read the partition. `start` calls this."""
        try:
            with Consumer(self._settings) as consumer, ThreadPoolExecutor(self.workers) as pool:
                self._read(consumer, pool)
        except BaseException as error:
            self._failure = error

    def stop(self) -> None:
        """Finish the current batch, commit it and end the thread. Raise the exception that ended it before, if any."""
        self._stopping.set()
        self.join()
        if self._failure is not None:
            raise self._failure

    def _read(self, consumer: Consumer, pool: ThreadPoolExecutor) -> None:
        mine = [TopicPartition(self._topic, self.partition)]
        consumer.assign(mine)
        while not self._stopping.is_set():
            records = consumer.consume(_BATCH, timeout=0.1)
            if errors := [record.error() for record in records if record.error() is not None]:
                if errors[0].code() not in NOT_READY:
                    raise KafkaException(errors[0])
                consumer.assign(mine)
            elif records:
                list(pool.map(self._handle_all, _by_key(records)))  # waits for all of them, and raises what one of them raised
                consumer.commit(offsets=following(records), asynchronous=False)

    def _handle_all(self, records: Sequence[Message]) -> None:
        for record in records:
            self._handle(record)


def readers(
    settings: Mapping[str, object], topic: str, handle: Callable[[Message], None], important_workers: int = 2
) -> list[PartitionReader]:
    """Return a reader for each partition of a topic, not started. The last, important one gets `important_workers`."""
    with Consumer(dict(settings)) as consumer:
        last = partition_count(consumer, topic) - 1
    return [PartitionReader(settings, topic, p, handle, important_workers if p == last else 1) for p in range(last + 1)]


def _by_key(records: Iterable[Message]) -> list[list[Message]]:
    together: dict[bytes | None, list[Message]] = {}
    for record in records:
        together.setdefault(record.key(), []).append(record)
    return list(together.values())
