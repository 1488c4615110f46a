"""A trial of a worker pool: it runs in a process of its own, is killed under load, and then once more to the end.

Nothing of this is needed in an application. It is how one finds out what a crash does to it.
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
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer, Message, TopicPartition

from stocks.journal import Journal
from stocks.workers import Progress, WorkerPool

__all__ = ["Highest", "PoolOutcome", "try_pool"]

_PATIENCE = 60
_ENOUGH = 20  # processed records of each partition, before it is killed
_IDLE = 1.0  # seconds without work, after which it is killed in any case
_STUCK = (0, 5)  # this record's processing takes longer than its process lives

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["confluent_kafka", "json", "random"])


class Highest:
    """What one might write at first: commits after the highest offset that is finished."""

    def __init__(self) -> None:
        self.under_way = 0
        self.highest: int | None = None

    def __len__(self) -> int:
        return self.under_way

    def taken(self, offset: int) -> None:
        """One more."""
        self.under_way += 1

    def finished(self, offset: int) -> None:
        """One less."""
        self.under_way -= 1
        self.highest = offset if self.highest is None else max(self.highest, offset)

    def committable(self) -> int | None:
        """After the highest one."""
        return None if self.highest is None else self.highest + 1


@dataclass(frozen=True)
class PoolOutcome:
    """What became of the records.

    Attributes
    ----------
    passed
        When it was killed, how many records had not been processed, though a later one of their partition was committed.
    lost, doubled
        In the end, how many records were never processed, and how many times too often others were.
    """

    passed: int
    lost: int
    doubled: int


def try_pool(
    config: Mapping[str, object], topic: str, progress: Callable[[], Progress], *, group: str, folder: Path, workers: int = 4
) -> PoolOutcome:
    """Have a pool process a topic; kill it with SIGKILL amid the work, after a commit; start it again, to the end.

    One record (offset 5 of partition 0) is stuck in the first process until that is killed; the others take some milliseconds.

    Parameters
    ----------
    config
        Settings of clients: at least ``bootstrap.servers``.
    topic
        A topic with some hundred records in each partition, of several keys.
    progress
        A class that keeps account of a partition. If it is written in a notebook, its cell holds all that it needs.
    group
        A group of its own.
    folder
        Where it leaves a journal of what was processed, ``group.txt``, and ``group.json``: what was processed and what was
        committed when it was killed.
    workers
        How many threads.

    Returns
    -------
    PoolOutcome
        What became of the records.

    Raises
    ------
    RuntimeError
        When the pool ended by itself, or its successor did not come to the end.
    """
    consumer = Consumer({**config, "group.id": group})
    partitions = [TopicPartition(topic, p) for p in consumer.list_topics(topic, timeout=10).topics[topic].partitions]
    marks = {p.partition: consumer.get_watermark_offsets(p, timeout=10) for p in partitions}
    journal = Journal(folder / f"{group}.txt")
    # A static member: who comes back under the same name need not wait until the group has given up its predecessor.
    settings = {**config, "group.id": group, "group.instance.id": "one"}
    settings |= {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    settings |= {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500, "queued.min.messages": 1000, "log_level": 0}

    def run(left: int, *, kill: bool) -> int | None:
        task = (settings, topic, str(folder / f"{group}.txt"), _as_text(progress), workers, len(partitions), left, kill)
        process = _processes.Process(target=_run, args=task, daemon=True)
        process.start()
        process.join(_PATIENCE + 5)
        return process.exitcode

    try:
        records = {(p, offset) for p, (low, high) in marks.items() for offset in range(low, high)}
        if (status := run(len(records), kill=True)) != -signal.SIGKILL:
            raise RuntimeError(f"{group}: its process was to be killed, and ended with exit status {status}")
        committed = {p.partition: p.offset for p in consumer.committed(partitions, timeout=10) if p.offset >= 0}
        before = set(journal.places())
        killed = {"committed": committed, "processed": sorted(before)}
        (folder / f"{group}.json").write_text(json.dumps(killed))
        behind = {(p, offset) for p, offset in records if offset < committed.get(p, 0)}
        if (status := run(len(records - behind), kill=False)) != 0:
            raise RuntimeError(f"{group}: its successor ended with exit status {status}")
        processed = Counter(journal.places())
    finally:
        journal.close()
        consumer.close()
    lost = len(records - processed.keys())
    return PoolOutcome(len(behind - before), lost, processed.total() - len(processed))


# -- in the process that is tried -----------------------------------------------------------------------------------


class _TriedConsumer(Consumer):
    """Kills its process after a commit, once that is due."""

    due: Callable[[], bool] = staticmethod(lambda: False)
    _was_due = False

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        done = super().commit(*args, **kwargs)
        if self._was_due:  # that was so before this commit was worked out
            os.kill(os.getpid(), signal.SIGKILL)
        self._was_due = self.due()
        return done


def _run(
    settings: Mapping[str, object],
    topic: str,
    path: str,
    progress: Callable[[], Progress] | tuple[str, str],
    workers: int,
    partitions: int,
    left: int,
    kill: bool,
) -> None:
    signal.alarm(_PATIENCE)  # should nobody be left to end it
    journal, consumer = Journal(path), _TriedConsumer(dict(settings))
    never = threading.Event()
    processed: list[float] = []  # when

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
            os.kill(os.getpid(), signal.SIGKILL)  # it commits nothing, it seems
        return len(processed) >= left

    if kill:
        consumer.due = enough
    account = progress if callable(progress) else _from_text(progress)
    WorkerPool(consumer, handle, account, workers=workers, limit=50, commit_every=0.1).run(topic, stopping)


def _as_text(progress: Callable[[], Progress]) -> Callable[[], Progress] | tuple[str, str]:
    """What can be sent to another process: a class that is written in a notebook exists nowhere else, so its cell is sent."""
    if progress.__module__ != "__main__":
        return progress
    method = next(value for value in vars(progress).values() if inspect.isfunction(value))
    lines, _ = inspect.findsource(method)
    return progress.__name__, "".join(lines)


def _from_text(name_and_text: tuple[str, str]) -> Callable[[], Progress]:
    name, text = name_and_text
    names: dict[str, Any] = {"__name__": "a_cell"}
    exec(text, names)
    return cast(Callable[[], Progress], names[name])
