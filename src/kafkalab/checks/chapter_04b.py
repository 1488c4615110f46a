"""Chapter 04: threads, a pool of workers, priorities."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kafkalab.checks.common import Place, answer, behind, counted, each_once
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight

__all__ = ["LABS"]

# -- what several labs ask ------------------------------------------------------------------------------------------


def _places(sight: Sight, topic: str) -> set[Place]:
    if not sight.partitions(topic):
        raise Unmet(f"There is no topic {topic!r} yet.")
    return {(p, offset) for p, end in sight.end_offsets(topic).items() for offset in range(end)}


def _members(sight: Sight, group: str) -> list[int]:
    """How many partitions each member has."""
    groups = sight.view().groups
    return sorted(len(m.partitions) for m in groups[group].members) if group in groups else []


def _committed_to_the_end(group: str, topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        _places(sight, topic)
        for partition, end, lag in behind(sight, sight.committed(group), topic):
            if lag is None:
                raise Unmet(f"{group} has committed nothing in partition {partition}, where {counted(end, 'record')} stand.")
            raise Unmet(f"In partition {partition} {group} is {counted(lag, 'record')} behind the end.")

    return probe


# -- a consumer for each thread -------------------------------------------------------------------------------------

_THREE, _FIVE = "stock-prices-3", "stock-prices-5"


def _read_by(sight: Sight, topic: str) -> Mapping[str, list[Place]]:
    given = answer(sight, "read", "who read what: {topic: {thread: [(partition, offset), …]}}")
    if not given.get(topic):  # type: ignore[attr-defined]
        raise Unmet(f"Nothing was read from {topic} yet.")
    return given[topic]  # type: ignore[index]


def _two_idle(sight: Sight) -> None:
    sizes = _members(sight, _THREE)
    if len(sizes) == 1:
        raise Unmet(f"The group {_THREE} has one member. Does each thread have a consumer of its own?")
    if sizes != [0, 0, 1, 1, 1]:
        raise Unmet(f"The group {_THREE} has {counted(len(sizes), 'member')}, which own {sum(sizes)} partitions. Five threads, still running, are asked for.")


def _three_read(sight: Sight) -> None:
    read = _read_by(sight, _THREE)
    each_once([place for places in read.values() for place in places], _places(sight, _THREE), "The threads")
    busy = [name for name, places in read.items() if places]
    if len(busy) != 3:
        raise Unmet(f"{counted(len(busy), 'thread')} read anything. Were the prices sent when the group had settled?")


def _all_five_read(sight: Sight) -> None:
    read = _read_by(sight, _FIVE)
    each_once([place for places in read.values() for place in places], _places(sight, _FIVE), "The threads")
    if len(read) != 5 or not all(read.values()):
        busy = sum(1 for places in read.values() if places)
        raise Unmet(f"{counted(busy, 'thread')} read anything, not 5. Were the prices sent when the group had settled?")


def _left(sight: Sight) -> None:
    _committed_to_the_end(_FIVE, _FIVE)(sight)
    if sizes := _members(sight, _FIVE):
        raise Unmet(f"The group {_FIVE} still has {counted(len(sizes), 'member')}. Who closes the consumer of a thread that is told to stop?")


# -- workers --------------------------------------------------------------------------------------------------------

_LOAD, _POOL = "stock-prices-load", "contiguous"


def _account(sight: Sight, taken: Iterable[int], finished: Iterable[int]) -> tuple[int | None, int]:
    """What a learner's class says after these calls."""
    make = answer(sight, "progress", "your class")
    try:
        account = make()  # type: ignore[operator]
        for offset in taken:
            account.taken(offset)
        for offset in finished:
            account.finished(offset)
        return account.committable(), len(account)
    except Exception as error:
        raise Unmet(f"taken: {list(taken)}, finished: {list(finished)}: your class raised {type(error).__name__}: {error}") from error


def _in_order(sight: Sight) -> None:
    if (found := _account(sight, [], [])[0]) is not None:
        raise Unmet(f"Before anything was taken, {found} may be committed? There is nothing to commit: None.")
    if (found := _account(sight, [4, 5, 6], [])[0]) is not None:
        raise Unmet(f"4, 5, 6 taken, none finished: {found}. There is nothing to commit: None.")
    for finished, wanted in (([4], 5), ([4, 5, 6], 7)):
        found, _ = _account(sight, [4, 5, 6], finished)
        if found is None:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: nothing to commit.")
        if found == wanted - 1:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: {found}. Committed is the *next* offset to read.")
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: {found}.")


def _held_back(sight: Sight) -> None:
    for finished, wanted in (([5, 6], None), ([4, 6], 5), ([6, 4], 5), ([6, 5, 4], 7), ([5, 4], 6)):
        found, _ = _account(sight, [4, 5, 6], finished)
        if found != wanted and found is not None and (wanted is None or found > wanted):
            raise Unmet(f"4, 5, 6 taken, {finished} finished in this order: {found}. What becomes of the unfinished one in a crash?")
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished in this order: {found}. More is done than that.")


def _with_gaps(sight: Sight) -> None:
    for finished, wanted in (([3, 7], 8), ([7, 3, 12], 13), ([7, 12], None)):
        found, _ = _account(sight, [3, 7, 12], finished)
        if found != wanted:
            raise Unmet(f"3, 7, 12 taken, {finished} finished: {found}. There is no record between them; which one is the next that was taken?")


def _bounded(sight: Sight) -> None:
    for finished, wanted in (([], 3), ([5, 6], 3), ([4], 2), ([5, 4], 1), ([6, 5, 4], 0)):
        _, found = _account(sight, [4, 5, 6], finished)
        if found != wanted:
            raise Unmet(f"4, 5, 6 taken, {finished} finished: len() says {found}, but {wanted} may not be committed yet.")


def _nothing_passed(sight: Sight) -> None:
    path = Path(str(answer(sight, "folder", "where the trials left their journals")), f"{_POOL}.json")
    if not path.is_file():
        raise Unmet(f"No trial of the group {_POOL!r} was made yet.")
    killed = json.loads(path.read_text())
    processed = {tuple(place) for place in killed["processed"]}
    below = {(int(p), offset) for p, end in killed["committed"].items() for offset in range(end)}
    if not below:
        raise Unmet("When it was killed, the pool had committed nothing at all.")
    if wrong := sorted(below - processed):
        raise Unmet(
            f"When it was killed, offset {wrong[0][1]} of partition {wrong[0][0]} was unprocessed, and a later one committed "
            f"({counted(len(wrong), 'record')} in all)."
        )


def _nothing_lost(sight: Sight) -> None:
    path = Path(str(answer(sight, "folder", "where the trials left their journals")), f"{_POOL}.txt")
    if not path.is_file():
        raise Unmet(f"No trial of the group {_POOL!r} was made yet.")
    processed = {tuple(map(int, line.split())) for line in path.read_text().splitlines()}
    if lost := _places(sight, _LOAD) - processed:
        raise Unmet(f"{counted(len(lost), 'price')} {'was' if len(lost) == 1 else 'were'} never processed.")
    _committed_to_the_end(_POOL, _LOAD)(sight)


_THREADS = (
    Lab(
        "04_threads",
        "A consumer for each thread",
        (
            Requirement("five threads share three partitions, and two of them are idle", _two_idle),
            Requirement("three threads read every price, each once", _three_read),
            Requirement("five threads share five partitions, and all of them read", _all_five_read),
            Requirement("threads that were told to stop have committed and left", _left),
        ),
        (
            "Make the consumer in `run`, and use it nowhere else. `__init__` keeps what `run` needs, and makes the stop flag.",
            "The flag is a `threading.Event`: `run` loops `while not self.stopping.is_set()`, `stop` sets it and joins.",
            "Per batch: `consumer.consume(20, timeout=0.1)`, `handle(records)`, `consumer.commit(asynchronous=False)`. Close in `finally`.",
            "Or let `stocks.loop.read_batches` do it: its `stopping` is `self.stopping.is_set`.",
        ),
    ),
    Lab(
        "04_workers",
        "A pool of workers that commits nothing unfinished",
        (
            Requirement("what is finished in order may be committed", _in_order),
            Requirement("nothing is committed that comes after an unfinished record", _held_back),
            Requirement("offsets may have gaps", _with_gaps),
            Requirement("it knows how many may not be committed yet", _bounded),
            Requirement("when it was killed, no unprocessed record was below the committed offset", _nothing_passed),
            Requirement("in the end every price was processed and committed", _nothing_lost),
        ),
        (
            "Keep the offsets in the order in which they were taken, and a set of those that are not finished.",
            "Whenever one is finished: while the first of the row is finished, take it off the row. The last one taken off, + 1, may be committed.",
            "A `collections.deque` has `append` and `popleft`. `len()` is how many stand in the row, finished or not.",
        ),
    ),
)

# -- priorities -----------------------------------------------------------------------------------------------------

_PRICES, _READERS, _FIRST = "stock-prices", "partition-readers", "important-first"
_IMPORTANT = {"IBM", "UBER"}


def _alone(sight: Sight) -> None:
    _places(sight, _PRICES)
    found = len(sight.partitions(_PRICES))
    keys: dict[int, set[str]] = {}
    for m in sight.records(_PRICES):
        keys.setdefault(m.partition(), set()).add((m.key() or b"").decode(errors="replace"))
    if keys.get(found - 1) != _IMPORTANT or any(_IMPORTANT & names for p, names in keys.items() if p != found - 1):
        raise Unmet(f"The last partition holds {', '.join(sorted(keys.get(found - 1, set()))) or 'nothing'}.")


def _a_reader_each(sight: Sight) -> None:
    started = answer(sight, "readers", "the readers that you started")
    partitions = len(sight.partitions(_PRICES))
    if len(started) != partitions:  # type: ignore[arg-type]
        raise Unmet(f"{counted(len(started), 'reader')} for {partitions} partitions. How many does the topic's metadata tell?")  # type: ignore[arg-type]
    read = answer(sight, "read", "(partition, offset) of each price that was processed")
    each_once(read, _places(sight, _PRICES), "The readers")  # type: ignore[arg-type]


def _no_members(sight: Sight) -> None:
    if _READERS not in sight.view().groups:
        raise Unmet(f"Nothing was ever committed under the name {_READERS!r}.")
    if sizes := _members(sight, _READERS):
        raise Unmet(f"The group {_READERS} has {counted(len(sizes), 'member')}. Who assigns the partitions here?")


def _more_workers(sight: Sight) -> None:
    most = answer(sight, "at_once", "how many records of each partition were processed at once at most: {partition: number}")
    last = len(sight.partitions(_PRICES)) - 1
    for partition, number in sorted(most.items()):  # type: ignore[attr-defined]
        if partition != last and number > 1:
            raise Unmet(f"Partition {partition} had {number} workers at once; one is enough for what is not important.")
    if most.get(last, 0) < 2:  # type: ignore[attr-defined]
        raise Unmet("No two prices of the last partition were processed at once. How is a batch shared among workers?")
    if most[last] > 2:  # type: ignore[index]
        raise Unmet(f"{most[last]} prices of two stocks were processed at once: so two of one stock, and their order is left to chance.")  # type: ignore[index]


def _handled(sight: Sight) -> list[Place]:
    return [tuple(place) for place in answer(sight, "handled", "(partition, offset) of each price, in the order handled")]  # type: ignore[misc, union-attr]


def _late(sight: Sight) -> int:
    """Offset of the first important price that was sent in the middle."""
    return int(answer(sight, "late", "the offset of the first price that was sent in the middle"))  # type: ignore[call-overload]


def _important_first(sight: Sight) -> None:
    handled, late = _handled(sight), _late(sight)
    last = len(sight.partitions(_PRICES)) - 1
    begun = [p for p, _ in handled[:late]]
    if begun != [last] * late:
        other = next((n for n, p in enumerate(begun) if p != last), len(begun))
        raise Unmet(f"{late} important prices were waiting, and after {other} of them one of the others was handled. What is paused at the beginning?")


def _important_between(sight: Sight) -> None:
    handled, late = _handled(sight), _late(sight)
    last = len(sight.partitions(_PRICES)) - 1
    at = [n for n, (p, offset) in enumerate(handled) if p == last and offset >= late]
    if not at:
        raise Unmet("None of the important prices that were sent in the middle was handled.")
    if any(p != last for p, _ in handled[at[0] : at[-1]]):
        raise Unmet("Others were handled between the important prices that came in the middle. Are they paused again?")
    if all(p == last for p, _ in handled[at[-1] :]):
        raise Unmet(
            "The important prices that came in the middle were handled last, after all the others. What has been fetched already waits "
            "in a queue; how can one know, before it is their turn, that they are there?"
        )


def _unmoved(sight: Sight) -> None:
    positions = answer(sight, "positions", "where the other partitions stood at each important price")
    late = _late(sight)
    for first, following in ((0, positions[:late]), (late, positions[late:])):  # type: ignore[index]
        if any(position != positions[first] for position in following):  # type: ignore[index]
            raise Unmet("The position of another partition moved between two important prices.")


def _all_handled(sight: Sight) -> None:
    each_once(_handled(sight), _places(sight, _PRICES), "The consumer")
    _committed_to_the_end(_FIRST, _PRICES)(sight)


_PRIORITIES = (
    Lab(
        "04_priority",
        "More workers for important stocks",
        (
            Requirement("IBM and UBER are alone on the last partition", _alone),
            Requirement("each partition has a reader, and every price was read once", _a_reader_each),
            Requirement("nobody joined a group", _no_members),
            Requirement("the last partition had two workers at once, the others one", _more_workers),
            Requirement("all that was read is committed", _committed_to_the_end(_READERS, _PRICES)),
        ),
        (
            "`consumer.assign([TopicPartition(topic, partition)])` instead of `subscribe`; without an offset it begins where was committed. "
            "Nothing comes? Look at the `error()` of what `consume` returns: after one out of `NOT_READY`, assign again.",
            "Put the records of a batch into lists by key. `ThreadPoolExecutor(workers)` and its `map` give each list to a worker.",
            "`list(pool.map(…))` returns when all are done. Then `consumer.commit(offsets=following(records), asynchronous=False)`.",
            "`partition_count(consumer, topic)` tells how many readers there are; the last of them gets more workers.",
        ),
    ),
    Lab(
        "04_pause",
        "Others wait while the important partition has data",
        (
            Requirement("what was important came first", _important_first),
            Requirement("what became important in the middle came before the rest", _important_between),
            Requirement("paused partitions do not move", _unmoved),
            Requirement("every price was handled once, and is committed", _all_handled),
        ),
        (
            "Begin with the others paused. `consumer.pause` and `consumer.resume` take lists of partitions.",
            "With `enable.partition.eof` a message whose error code is `KafkaError._PARTITION_EOF` says that its partition has been read "
            "to the end, `message.offset()`. If that is the last partition, the others may go on.",
            "`consumer.get_watermark_offsets(important, cached=True)[1]` is the end as the client knows it by now, without asking anybody. "
            "Beyond the end that you have read? Then pause the others again.",
        ),
    ),
)

LABS = (*_THREADS, *_PRIORITIES)
