# Written in the lab 04_priority.
"""A reader for each partition, assigned by hand, and more workers for the important one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from stocks.book import following
from stocks.coordinator import NOT_READY
from stocks.topics import partition_count

__all__ = ["PartitionReader", "readers"]

_BATCH = 50


class PartitionReader(threading.Thread):
    """Reads one partition, at least once each record, with some workers.

    Nobody takes over when it dies, and nobody hinders a second one from reading the same partition: that is left to whoever
    starts it. The workers share a batch key by key, so that the records of a key stay in order; it is committed when all of it
    is done.

    Parameters
    ----------
    settings
        The consumer's, with ``enable.auto.commit=False`` and a ``group.id``: none is joined, but committed offsets need a name.
    topic, partition
        What to read, from where it was committed.
    handle
        Called with each record, by several threads at once.
    workers
        How many threads. More than there are keys in the partition are of no use.
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
        """Read; called by `start`."""
        try:
            with Consumer(self._settings) as consumer, ThreadPoolExecutor(self.workers) as pool:
                self._read(consumer, pool)
        except BaseException as error:
            self._failure = error

    def stop(self) -> None:
        """Have it finish its batch; on return it has done so. Raises what ended it before, if anything did."""
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
                list(pool.map(self._handle_all, _by_key(records)))  # waits for all, and raises what one of them raised
                consumer.commit(offsets=following(records), asynchronous=False)

    def _handle_all(self, records: Sequence[Message]) -> None:
        for record in records:
            self._handle(record)


def readers(
    settings: Mapping[str, object], topic: str, handle: Callable[[Message], None], important_workers: int = 2
) -> list[PartitionReader]:
    """A reader for each partition of a topic, to be started: with one worker, the last one, which is important, with more."""
    with Consumer(dict(settings)) as consumer:
        last = partition_count(consumer, topic) - 1
    return [PartitionReader(settings, topic, p, handle, important_workers if p == last else 1) for p in range(last + 1)]


def _by_key(records: Iterable[Message]) -> list[list[Message]]:
    together: dict[bytes | None, list[Message]] = {}
    for record in records:
        together.setdefault(record.key(), []).append(record)
    return list(together.values())
