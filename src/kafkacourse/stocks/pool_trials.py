"""Try out a worker pool: it runs in its own process, is killed under load, then runs again to the end.

An application doesn't need any of this. It shows what a crash does to a pool.
"""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import random
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer, Message, TopicPartition

from kafkacourse.stocks.journal import Journal
from kafkacourse.stocks.workers import Tracker, WorkerPool

__all__ = ["Highest", "PoolOutcome", "try_pool"]

_PATIENCE = 60
_ENOUGH = 20  # processed records of each partition, before it is killed
_IDLE = 1.0  # seconds without work, after which it is killed in any case
_STUCK = (0, 5)  # processing this record takes longer than its process lives

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["confluent_kafka", "json", "random"])


class Highest:
    """A first attempt: commit after the highest finished offset."""

    def __init__(self) -> None:
        self.under_way = 0
        self.highest: int | None = None

    def __len__(self) -> int:
        return self.under_way

    def taken(self, offset: int) -> None:
        """Count one more record."""
        self.under_way += 1

    def finished(self, offset: int) -> None:
        """Count one less, and keep the highest offset."""
        self.under_way -= 1
        self.highest = offset if self.highest is None else max(self.highest, offset)

    def committable(self) -> int | None:
        """Return the offset after the highest one."""
        return None if self.highest is None else self.highest + 1


@dataclass(frozen=True)
class PoolOutcome:
    """What happened to the records.

    Attributes
    ----------
    passed
        How many records a commit had passed when the pool was killed, though they weren't processed yet.
    lost, duplicates
        How many records were never processed in the end, and how many times a record was processed again.
    """

    passed: int
    lost: int
    duplicates: int


def try_pool(
    config: Mapping[str, object], topic: str, tracker: Callable[[], Tracker], *, name: str, folder: Path, workers: int = 4
) -> PoolOutcome:
    """Process a topic with a pool, kill it with SIGKILL under load after a commit, and start it again, to the end.

    One record (offset 5 of partition 0) hangs in the first process until the kill. The others take a few milliseconds.

    Parameters
    ----------
    config
        Client settings: at least ``bootstrap.servers``.
    topic
        A topic with a few hundred records in each partition, with several keys.
    tracker
        A class that tracks the progress of a partition. If you write it in a notebook, its cell holds everything it
        needs.
    name
        The trial's name. Each trial has a new consumer group, whose name begins with it.
    folder
        Where the trial leaves a journal of the processed records, ``name.txt``, and ``name.json``: the group, and what
        was processed and committed at the kill. They replace those of an earlier trial.
    workers
        The number of threads.

    Returns
    -------
    PoolOutcome
        What happened to the records.

    Raises
    ------
    RuntimeError
        If the pool ended by itself, or its successor didn't reach the end.
    """
    group = f"{name}-{uuid.uuid4().hex[:6]}"
    consumer = Consumer({**config, "group.id": group})
    partitions = [TopicPartition(topic, p) for p in consumer.list_topics(topic, timeout=10).topics[topic].partitions]
    marks = {p.partition: consumer.get_watermark_offsets(p, timeout=10) for p in partitions}
    path, summary = folder / f"{name}.txt", folder / f"{name}.json"
    for earlier in (path, summary):
        earlier.unlink(missing_ok=True)
    journal = Journal(path)
    # A static member: a process that comes back under the same name doesn't wait for its predecessor's session timeout.
    settings = {**config, "group.id": group, "group.instance.id": "one"}
    settings |= {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    settings |= {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500, "queued.min.messages": 1000, "log_level": 0}

    def run(left: int, *, kill: bool) -> int | None:
        task = (settings, topic, str(path), _as_text(tracker), workers, len(partitions), left, kill)
        process = _processes.Process(target=_run, args=task, daemon=True)
        process.start()
        process.join(_PATIENCE + 5)
        return process.exitcode

    try:
        records = {(p, offset) for p, (low, high) in marks.items() for offset in range(low, high)}
        if (status := run(len(records), kill=True)) != -signal.SIGKILL:
            raise RuntimeError(f"{name}: its process was to be killed, and ended with exit status {status}")
        committed = {p.partition: p.offset for p in consumer.committed(partitions, timeout=10) if p.offset >= 0}
        before = set(journal.places())
        summary.write_text(json.dumps({"group": group, "committed": committed, "processed": sorted(before)}))
        behind = {(p, offset) for p, offset in records if offset < committed.get(p, 0)}
        if (status := run(len(records - behind), kill=False)) != 0:
            raise RuntimeError(f"{name}: its successor ended with exit status {status}")
        processed = Counter(journal.places())
    finally:
        journal.close()
        consumer.close()
    lost = len(records - processed.keys())
    return PoolOutcome(len(behind - before), lost, processed.total() - len(processed))


# -- in the process that is tried -----------------------------------------------------------------------------------


class _TriedConsumer(Consumer):
    """Kill its process after a commit, once that is due."""

    due: Callable[[], bool] = staticmethod(lambda: False)
    _was_due = False

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        done = super().commit(*args, **kwargs)
        if self._was_due:  # it was due before the pool chose this commit's offsets
            os.kill(os.getpid(), signal.SIGKILL)
        self._was_due = self.due()
        return done


def _run(
    settings: Mapping[str, object],
    topic: str,
    path: str,
    tracker: Callable[[], Tracker] | tuple[str, str],
    workers: int,
    partitions: int,
    left: int,
    kill: bool,
) -> None:
    signal.alarm(_PATIENCE)  # a last resort if the parent dies
    journal, consumer = Journal(path), _TriedConsumer(dict(settings))
    never = threading.Event()
    processed: list[float] = []  # when each record was processed

    def handle(record: Message) -> None:
        stuck = kill and (record.partition(), record.offset()) == _STUCK
        never.wait(_PATIENCE if stuck else random.Random(record.offset()).uniform(0.001, 0.010))
        journal.add(record)
        processed.append(time.monotonic())

    def enough() -> bool:
        counts = Counter(partition for partition, _ in journal.places())
        return len(counts) == partitions and min(counts.values()) >= _ENOUGH

    def stopping() -> bool:
        if kill and processed and time.monotonic() - processed[-1] > _IDLE:
            os.kill(os.getpid(), signal.SIGKILL)  # the pool seems to commit nothing
        return len(processed) >= left

    if kill:
        consumer.due = enough
    account = tracker if callable(tracker) else _from_text(tracker)
    WorkerPool(consumer, handle, account, workers=workers, limit=50, commit_every=0.1).run(topic, stopping)


def _as_text(tracker: Callable[[], Tracker]) -> Callable[[], Tracker] | tuple[str, str]:
    """Return what another process can receive: a class, or the cell of a class from a notebook, which exists nowhere else."""
    if tracker.__module__ != "__main__":
        return tracker
    method = next(value for value in vars(tracker).values() if inspect.isfunction(value))
    lines, _ = inspect.findsource(method)
    return tracker.__name__, "".join(lines)


def _from_text(name_and_text: tuple[str, str]) -> Callable[[], Tracker]:
    name, text = name_and_text
    names: dict[str, Any] = {"__name__": "a_cell"}
    exec(text, names)
    return cast(Callable[[], Tracker], names[name])
