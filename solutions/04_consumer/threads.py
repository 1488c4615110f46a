# Written in the lab 04_threads.
"""Run a consumer in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, Message

from kafkacourse.stocks.book import following
from kafkacourse.stocks.loop import read_batches

__all__ = ["ConsumerThread"]


class ConsumerThread(threading.Thread):
    """Read a topic in batches, each record at least once, until you call `stop`.

    Threads that share a consumer can't tell what the others have finished, so each thread has its own. In a group, the
    threads divide the partitions like processes do.

    Parameters
    ----------
    settings
        The consumer's settings, with ``group.id`` and ``enable.auto.commit=False``.
    topic
        What to read.
    handle
        Called with each batch, on this thread. When it returns, the thread commits the batch.
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
        """Read the topic. `start` calls this."""
        try:
            consumer = Consumer(self._settings)

            def handle(records: Sequence[Message]) -> None:
                self._handle(records)
                consumer.commit(offsets=following(records), asynchronous=False)

            read_batches(consumer, self._topic, handle, stopping=self._stopping.is_set)
        except BaseException as error:
            self._failure = error

    def stop(self) -> None:
        """Finish the current batch, leave the group and end the thread.

        Raises
        ------
        BaseException
            The exception that ended the thread before, if any.
        """
        self._stopping.set()
        self.join()
        if self._failure is not None:
            raise self._failure
