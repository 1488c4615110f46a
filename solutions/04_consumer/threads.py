# Written in the lab 04_threads.
"""A thread with a consumer of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, Message

from stocks.book import following
from stocks.loop import read_batches

__all__ = ["ConsumerThread"]


class ConsumerThread(threading.Thread):
    """Reads a topic in batches, at least once each, until it is told to stop.

    Of threads that used the same consumer none could tell what the others have finished, so each has its own. In a group they
    share the partitions, as processes would.

    Parameters
    ----------
    settings
        The consumer's, with ``group.id`` and ``enable.auto.commit=False``.
    topic
        What to read.
    handle
        Called with each batch, on this thread; when it returns the batch is committed.
    name
        The thread's name.
    """

    def __init__(
        self, settings: Mapping[str, object], topic: str, handle: Callable[[Sequence[Message]], None], name: str | None = None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._settings = dict(settings)
        self._topic = topic
        self._handle = handle
        self._stopping = threading.Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Read; called by `start`."""
        try:
            consumer = Consumer(self._settings)

            def handle(records: Sequence[Message]) -> None:
                self._handle(records)
                consumer.commit(offsets=following(records), asynchronous=False)

            read_batches(consumer, self._topic, handle, stopping=self._stopping.is_set)
        except BaseException as error:
            self._failure = error

    def stop(self) -> None:
        """Have it finish its batch and leave the group; on return it has.

        Raises
        ------
        BaseException
            What ended it before, if anything did.
        """
        self._stopping.set()
        self.join()
        if self._failure is not None:
            raise self._failure
