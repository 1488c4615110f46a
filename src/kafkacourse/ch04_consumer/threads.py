"""A consumer for each thread, and one consumer with a pool of workers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import Place, existing_group, places, read_everything, read_once
from kafkalab.checks.lab import Lab
from kafkalab.checks.wording import counted

__all__ = ["lab"]

lab = Lab("04_threads")

# -- 1: a consumer for each thread ----------------------------------------------------------------------------------

THREE, FIVE = "stock-prices-3", "stock-prices-5"

threads = lab.add_check(
    "04_threads",
    "A consumer for each thread",
    hints=(
        "Make the consumer in `run`, and use it nowhere else. `__init__` keeps what `run` needs, and makes the stop flag.",
        "The flag is a `threading.Event`: `run` loops `while not self.stopping.is_set()`, `stop` sets it and joins.",
        "Per batch: `consumer.consume(20, timeout=0.1)`, raise what has an `error()`, `handle(records)`, "
        "`consumer.commit(asynchronous=False)`. `with consumer:` closes it in any case.",
        "Or let `stocks.loop.read_batches` do it: its `stopping` is `self.stopping.is_set`.",
    ),
)


def _read_from(ctx: CheckContext, topic: str) -> dict[str, list[Place]]:
    what = "who read what: topic → thread → list of (partition, offset)"
    read = ctx.answer("read", dict[str, dict[str, list[Place]]], what).get(topic, {})
    if not any(read.values()):
        raise Unmet(f"Nothing was read from {topic} yet.")
    return read


def _each_once(ctx: CheckContext, topic: str) -> list[str]:
    """Return the threads that read from a topic. Raise `Unmet` unless together they read all of it."""
    read = _read_from(ctx, topic)
    read_once([place for found in read.values() for place in found], places(ctx, topic), "The threads")
    return [name for name, found in read.items() if found]


@threads.requires("Five threads share three partitions, and two of them are idle")
def two_are_idle(ctx: CheckContext) -> None:
    sizes = sorted(len(m.partitions) for m in existing_group(ctx, THREE).members)
    if len(sizes) == 1:
        raise Unmet(f"The group {THREE} has one member. Does each thread have a consumer of its own?")
    if sizes != [0, 0, 1, 1, 1]:
        raise Unmet(
            f"The group {THREE} has {counted(len(sizes), 'member')}, which own {counted(sum(sizes), 'partition')}. The lab "
            "asks for five threads that are still running."
        )


@threads.requires("Three threads read every price once")
def three_read(ctx: CheckContext) -> None:
    busy = _each_once(ctx, THREE)
    if len(busy) != 3:
        raise Unmet(
            f"{counted(len(busy), 'thread')} read from {THREE}, not 3. Did you send the prices after the rebalance was over?"
        )


@threads.requires("Five threads share five partitions, and all of them read")
def five_read(ctx: CheckContext) -> None:
    busy = _each_once(ctx, FIVE)
    if len(busy) != 5:
        raise Unmet(
            f"{counted(len(busy), 'thread')} read from {FIVE}, not 5. Did you send the prices after the rebalance was over?"
        )


@threads.requires("Threads that were told to stop have committed and left", after=five_read)
def stopped_threads_left(ctx: CheckContext) -> None:
    read_everything(ctx, FIVE, FIVE)
    if left := len(existing_group(ctx, FIVE).members):
        raise Unmet(
            f"The group {FIVE} still has {counted(left, 'member')}. Who closes the consumer of a thread that is told to stop?"
        )


# -- 2: a pool of workers -------------------------------------------------------------------------------------------

LOAD, TRIAL = "stock-prices-load", "contiguous"

workers = lab.add_check(
    "04_workers",
    "A pool of workers that commits nothing unfinished",
    hints=(
        "Keep the offsets in the order in which they were taken, and a set of those that are unfinished.",
        "Whenever one is finished: while the first in the queue is finished, remove it. The last one removed, + 1, may be "
        "committed.",
        "A `collections.deque` has `append` and `popleft`. `len()` is how many are in the queue, finished or not.",
    ),
)


def _account(ctx: CheckContext, taken: Iterable[int], finished: Iterable[int]) -> tuple[int | None, int]:
    """Return what a learner's class answers after these calls."""
    make = ctx.function("tracker", "your class")
    try:
        account = make()
        for offset in taken:
            account.taken(offset)
        for offset in finished:
            account.finished(offset)
        return account.committable(), len(account)
    except Exception as error:
        called = f"taken: {list(taken)}, finished: {list(finished)}"
        raise Unmet(f"{called}: your class raised {type(error).__name__}: {error}") from error


@workers.requires("What is finished in order may be committed")
def in_order(ctx: CheckContext) -> None:
    if (found := _account(ctx, [], [])[0]) is not None:
        raise Unmet(f"Nothing is taken yet, and your class says that {found} may be committed. It should be None.")
    if (found := _account(ctx, [4, 5, 6], [])[0]) is not None:
        raise Unmet(f"4, 5, 6 taken, none finished: your class says {found}. Nothing may be committed, so it should be None.")
    for finished, wanted in (([4], 5), ([4, 5, 6], 7)):
        found, _ = _account(ctx, [4, 5, 6], finished)
        if found is None:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: your class says that nothing may be committed.")
        if found == wanted - 1:
            raise Unmet(
                f"4, 5, 6 taken, {finished} finished: your class says {found}. A committed offset is the *next* one to read."
            )
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: your class says {found}.")


@workers.requires("Nothing is committed that comes after an unfinished record", after=in_order)
def held_back(ctx: CheckContext) -> None:
    for finished, wanted in (([5, 6], None), ([4, 6], 5), ([6, 4], 5), ([6, 5, 4], 7), ([5, 4], 6)):
        found, _ = _account(ctx, [4, 5, 6], finished)
        said = f"4, 5, 6 taken, {finished} finished in this order: your class says {found}."
        if found != wanted and found is not None and (wanted is None or found > wanted):
            raise Unmet(f"{said} What happens to the unfinished record in a crash?")
        if found != wanted:
            raise Unmet(f"{said} More than that is finished.")


@workers.requires("Offsets may have gaps", after=in_order)
def with_gaps(ctx: CheckContext) -> None:
    for finished, wanted in (([3, 7], 8), ([7, 3, 12], 13), ([7, 12], None)):
        found, _ = _account(ctx, [3, 7, 12], finished)
        if found != wanted:
            raise Unmet(
                f"3, 7, 12 taken, {finished} finished: your class says {found}. There is no record between them. Which one was "
                "taken next?"
            )


@workers.requires("It knows how many records may not be committed yet", after=in_order)
def bounded(ctx: CheckContext) -> None:
    for finished, wanted in (([], 3), ([5, 6], 3), ([4], 2), ([5, 4], 1), ([6, 5, 4], 0)):
        _, found = _account(ctx, [4, 5, 6], finished)
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: len() says {found}, but {wanted} may not be committed yet.")


def _left_by_the_trial(ctx: CheckContext, file: str) -> str:
    path = ctx.answer("folder", Path, "the folder with the journals of the trials") / file
    if not path.is_file():
        raise Unmet(f"There was no trial with the name {TRIAL!r} yet.")
    return path.read_text()


@workers.requires("When it was killed, every record below the committed offset was processed", after=held_back)
def nothing_was_passed(ctx: CheckContext) -> None:
    killed = json.loads(_left_by_the_trial(ctx, f"{TRIAL}.json"))
    processed = {tuple(place) for place in killed["processed"]}
    below = {(int(p), offset) for p, end in killed["committed"].items() for offset in range(end)}
    if not below:
        raise Unmet("When it was killed, the pool had committed nothing at all.")
    if passed := sorted(below - processed):
        raise Unmet(
            f"When it was killed, offset {passed[0][1]} of partition {passed[0][0]} was unprocessed, and a later one committed "
            f"({counted(len(passed), 'record')} in all)."
        )


@workers.requires("In the end every price was processed and committed", after=held_back)
def nothing_was_lost(ctx: CheckContext) -> None:
    processed = {tuple(map(int, line.split())) for line in _left_by_the_trial(ctx, f"{TRIAL}.txt").splitlines()}
    if lost := places(ctx, LOAD) - processed:
        raise Unmet(f"{counted(len(lost), 'price')} {'was' if len(lost) == 1 else 'were'} never processed.")
    read_everything(ctx, json.loads(_left_by_the_trial(ctx, f"{TRIAL}.json"))["group"], LOAD)
