"""One consumer and a pool of workers: many records at once, and no commit passes an unfinished record."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from queue import SimpleQueue
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kafkacourse.stocks.loop import leave
from kafkacourse.stocks.records import place

__all__ = ["Tracker", "WorkerPool"]

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.05  # how long finished work may wait to be noticed

# The end of a partition isn't an error, and a consumer that polled too late joins again by itself.
_NO_ERRORS = (KafkaError._PARTITION_EOF, KafkaError._MAX_POLL_EXCEEDED)

# A commit may fail with these. The next commit makes up for it, or another consumer now has the partition and reads it
# again.
_MAY_FAIL = (
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
)

Place = tuple[str, int]
"""Topic and partition."""


class Tracker(Protocol):
    """Tracks one partition, from its assignment until it's revoked. Only one thread uses it."""

    def __len__(self) -> int:
        """Return how many records were taken and can't be committed yet."""
        ...

    def taken(self, offset: int) -> None:
        """Note that processing of a record begins. Called in the order in which the partition is read.

        Parameters
        ----------
        offset
            The record's offset.
        """
        ...

    def finished(self, offset: int) -> None:
        """Note that a record was processed. Called in any order.

        Parameters
        ----------
        offset
            The record's offset.
        """
        ...

    def committable(self) -> int | None:
        """Return the offset to commit, or None if there is none yet."""
        ...


class _Share:
    """A partition, from its assignment until it's revoked.

    If it's assigned again, that's another share. So a worker's late report for the old one changes nothing.
    """

    def __init__(self, place: Place, tracker: Tracker) -> None:
        self.partition = TopicPartition(*place)
        self.tracker = tracker
        self.committed: int | None = None
        self.paused = False
        # The workers use the following two as well.
        self.gone = False
        self.working = 0


class WorkerPool:
    """Process the records of a topic with several threads, each at least once.

    Only the thread that calls `run` uses the consumer. It hands each record to the workers, and takes finished ones
    back from a queue. Records with the same key are processed one after the other, in order.

    Parameters
    ----------
    consumer
        A consumer that commits nothing by itself (``enable.auto.commit=false``). Pausing a partition discards its
        prefetched records, so a small ``queued.min.messages`` saves work.
    handle
        Called with each record, by several threads at once. An exception from it ends the pool.
    tracker
        Creates the object that tracks a partition: ``Contiguous``.
    workers
        The number of threads.
    limit
        How many records of a partition may be taken but not committable. Then the partition is paused until half of
        them are left.
    commit_every
        Seconds between two commits.
    patience
        Seconds to wait for records in progress when their partition is revoked, or at the end. Records that take longer
        aren't committed, so the partition's next owner processes them again.
    """

    def __init__(
        self,
        consumer: Consumer,
        handle: Callable[[Message], None],
        tracker: Callable[[], Tracker],
        *,
        workers: int = 4,
        limit: int = 100,
        commit_every: float = 1.0,
        patience: float = 10.0,
    ) -> None:
        self._consumer = consumer
        self._handle = handle
        self._tracker = tracker
        self._limit = limit
        self._commit_every = commit_every
        self._patience = patience
        self._workers = [threading.Thread(target=self._work, name=f"worker-{n}", daemon=True) for n in range(workers)]

        # Used by the thread that runs: what is assigned.
        self._shares: dict[Place, _Share] = {}
        # Used by all threads, guarded by `_changed`: a line per key of records in progress or waiting; and what failed.
        self._changed = threading.Condition()
        self._lines: dict[Hashable, deque[tuple[_Share, Message]]] = {}
        self._failure: BaseException | None = None
        # From that thread to the workers: lines whose first record is ready. And back: what is finished.
        self._ready: SimpleQueue[Hashable] = SimpleQueue()
        self._finished: SimpleQueue[tuple[_Share, int]] = SimpleQueue()

    def run(self, topic: str, stopping: Callable[[], bool]) -> None:
        """Process a topic until `stopping` says True. Then finish the records in progress, commit, and leave the group.

        Parameters
        ----------
        topic
            What to read.
        stopping
            Called after each poll, so several times a second. A signal handler can make it return True.

        Raises
        ------
        KafkaException
            If the client can't recover from an error by itself.
        BaseException
            What `handle` raised. That record isn't committed, nor any record after it.
        """
        for worker in self._workers:
            worker.start()
        try:
            self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
            due = time.monotonic() + self._commit_every
            while not stopping() and self._failure is None:
                self._take(self._consumer.poll(_POLL_SECONDS))
                self._note_finished()
                if time.monotonic() >= due:
                    self._commit(self._shares)
                    due = time.monotonic() + self._commit_every
        finally:
            try:
                self._release(list(self._shares), commit=True)
            finally:
                leave(self._consumer)
                for _ in self._workers:
                    self._ready.put(None)
                for worker in self._workers:
                    worker.join(1)  # a worker that hangs is left behind, and doesn't keep the process from ending
        if self._failure is not None:
            raise self._failure

    # -- what the thread that runs does: all that has to do with the consumer ------------------------------------------

    def _take(self, message: Message | None) -> None:
        """Hand a record to the workers. One at a time, so that no record is in hand while its partition is revoked."""
        if message is None:
            return
        error = message.error()
        if error is not None:
            if error.code() not in _NO_ERRORS:
                raise KafkaException(error)
            return
        topic, partition, offset = place(message)
        share = self._shares[topic, partition]
        share.tracker.taken(offset)
        if len(share.tracker) >= self._limit:
            self._consumer.pause([share.partition])
            share.paused = True
        # One line for each key, where a record waits for those before it. Without a key there is no order to keep.
        name = (topic, partition, offset if message.key() is None else message.key())
        with self._changed:
            line = self._lines.setdefault(name, deque())
            line.append((share, message))
            if len(line) == 1:
                self._ready.put(name)

    def _note_finished(self) -> None:
        while not self._finished.empty():  # no other thread takes anything out
            share, offset = self._finished.get()
            share.tracker.finished(offset)
            if share.paused and len(share.tracker) <= self._limit // 2:
                self._resume(share)

    def _resume(self, share: _Share) -> None:
        self._consumer.resume([share.partition])
        share.paused = False

    def _commit(self, shares: Mapping[Place, _Share]) -> None:
        offsets = [
            TopicPartition(*place, offset)
            for place, share in shares.items()
            if (offset := share.tracker.committable()) is not None and offset != share.committed
        ]
        if not offsets:
            return
        try:
            answers = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in _MAY_FAIL:
                raise
            _LOG.warning("not committed: %s", error.args[0].str())
            return
        for answer in answers:
            if answer.error is None:
                shares[answer.topic, answer.partition].committed = answer.offset
            elif answer.error.code() not in _MAY_FAIL:
                raise KafkaException(answer.error)

    def _release(self, places: Iterable[Place], *, commit: bool) -> None:
        """Give partitions up: drop waiting records, let the workers finish those in progress, and commit them."""
        shares = {place: self._shares.pop(place) for place in places if place in self._shares}
        with self._changed:
            for share in shares.values():
                share.gone = True
            if commit and not self._changed.wait_for(lambda: not any(s.working for s in shares.values()), self._patience):
                _LOG.warning("given up: records that are processed for more than %g s", self._patience)
        self._note_finished()
        for share in shares.values():
            if share.paused:  # otherwise it would still be paused when it comes back
                self._resume(share)
        if commit:
            self._commit(shares)

    # `poll` and `leave` call these three, so never while a record is handed over.

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for p in partitions:
            self._shares[p.topic, p.partition] = _Share((p.topic, p.partition), self._tracker())

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._release([(p.topic, p.partition) for p in partitions], commit=True)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._release([(p.topic, p.partition) for p in partitions], commit=False)  # they may already have another owner

    # -- what the workers do -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (name := self._ready.get()) is not None:
            with self._changed:
                share, record = self._lines[name][0]
                begun = not share.gone and self._failure is None
                share.working += begun
            failure: BaseException | None = None
            if begun:
                try:
                    self._handle(record)
                    self._finished.put((share, place(record)[2]))  # before `working` falls, for the thread that waits for that
                except BaseException as error:
                    failure = error
            with self._changed:
                if begun:
                    share.working -= 1
                    if self._failure is None:
                        self._failure = failure
                    self._changed.notify_all()
                self._lines[name].popleft()
                if self._lines[name]:
                    self._ready.put(name)
                else:
                    del self._lines[name]
