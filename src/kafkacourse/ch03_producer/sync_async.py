"""Five records sent one by one, five at once, and a broker that is down while a producer sends."""

from __future__ import annotations

from typing import cast

from kafkalab.checks.answers import WrongType, convert
from kafkalab.checks.brokers import was_down_and_came_back
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import Ledger
from kafkalab.checks.topics import existing, filled, has_shape, in_sync
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC = "my-example-topic"
FEWEST = 400
AGAIN = "To try again, run from the cell with `written = send_sync(5)`: it begins with an empty topic."
EARLIEST, LATEST = 1_500_000_000_000, 5_000_000_000_000  # milliseconds: the years 2017 and 2128

lab = Lab("03_sync_async")

check = lab.add_check(
    "03_sync_async",
    "Five records one by one, five at once",
    hints=(
        "produce takes key=, value= and on_delivery=, a function of two arguments: the error (None if there is none) and the "
        "record, with .partition() and .offset().",
        "producer.flush() waits for everything that was sent and calls your functions meanwhile. To wait for one record, "
        "flush after each.",
        "struct.unpack('>q', record.key()) returns the number again, in a tuple of one.",
    ),
)

check.requires("my-example-topic has 13 partitions with 3 replicas each")(has_shape(TOPIC, 13, 3))


def _keys(ctx: CheckContext) -> dict[tuple[int | None, int | None], int]:
    """Return each key as a number, by partition and offset, of the records that have one."""
    found = {}
    for message in filled(ctx, TOPIC):
        key = message.key()
        if key is not None and len(key) != 8:
            raise Unmet(f"There is a key of {len(key)} bytes, {key!r}. How many bytes does a long have? {AGAIN}")
        if key is not None:
            found[message.partition(), message.offset()] = int.from_bytes(key, "big", signed=True)
    if not found:
        raise Unmet(f"No record in {TOPIC} has a key. produce() takes it as bytes, beside the value.")
    return found


@check.requires("Keys are times in milliseconds, written as 8 bytes")
def keys_are_times(ctx: CheckContext) -> None:
    for number in _keys(ctx).values():
        if not EARLIEST < number < LATEST:
            raise Unmet(
                f"There is a key that reads {number}. Is it a time in milliseconds, with the highest byte first? {AGAIN}"
            )


@check.requires("Each value is 'Hello Mom' and the record's key", after=keys_are_times)
def values_name_keys(ctx: CheckContext) -> None:
    keys = _keys(ctx)
    for message in filled(ctx, TOPIC):
        number = keys.get((message.partition(), message.offset()))
        if number is not None and text_of(message) != f"Hello Mom {number}":
            raise Unmet(
                f"The record with the key {number} has the value {text_of(message)!r}. Which number belongs in it? {AGAIN}"
            )


def _five_are_there(ctx: CheckContext, name: str, clue: str) -> None:
    what = "five rows of (key, partition, offset)"
    given = ctx.answer(name, list[tuple[object, ...]], what)
    try:
        rows = [convert(row[:3], tuple[int, int, int]) for row in given]
    except WrongType as error:
        raise Unmet(f"`{name}` should hold {what}. In one of its rows, {error.about('row')}") from None
    if len(rows) != 5:
        raise Unmet(f"`{name}` has {counted(len(rows), 'row')}, not 5. {clue}")
    if len({row[0] for row in rows}) != 5:
        raise Unmet(f"`{name}` has the same key more than once. What makes the keys of five records differ?")
    there = _keys(ctx)
    for key, partition, offset in rows:
        if there.get((partition, offset)) != key:
            raise Unmet(
                f"`{name}` has the key {key} at offset {offset} of partition {partition}. The record there has another key, or "
                "there is none. Where do you get the partition and the offset from?"
            )


@check.requires("The five that you waited for one by one are where you were told", after=keys_are_times)
def written_are_there(ctx: CheckContext) -> None:
    _five_are_there(ctx, "written", "Does your function return a row for each record?")


@check.requires("The five that you sent at once are where their delivery reports say", after=keys_are_times)
def reported_are_there(ctx: CheckContext) -> None:
    _five_are_there(ctx, "reported", "When does the client call your function?")


replication = lab.add_check(
    "03_replication",
    "A broker is away while a producer sends",
    hints=(
        "cluster.stop_broker(1) and cluster.restart(1). cluster.wait_for(lambda view: …, 'what you wait for') waits until the "
        "condition holds.",
        "In a cell, lines = !kafka-topics.sh … keeps the printed lines. Each under-replicated partition has one with "
        "'Partition: '.",
    ),
)

came_back = was_down_and_came_back(1)
replication.requires("Broker 1 was down and came back")(came_back)


@replication.requires("You know how many partitions lacked a replica meanwhile", after=came_back)
def missing_replicas_are_known(ctx: CheckContext) -> None:
    missing = ctx.answer("missing", int, "how many partitions lacked a replica while broker 1 was down")
    after = ctx.answer("missing_after", int, "how many lack one now")
    if missing != len(existing(ctx, TOPIC)):
        raise Unmet(
            f"`missing` is {missing}. Which partitions have a replica on broker 1? And was broker 1 out of every ISR when you "
            "looked?"
        )
    if after != 0:
        raise Unmet(f"`missing_after` is {after}. Did you wait until every ISR was complete again?")


replication.requires("All replicas are in sync again", after=came_back)(in_sync(TOPIC))


@replication.requires("Everything that was acknowledged is in the topic", after=came_back)
def acknowledged_are_there(ctx: CheckContext) -> None:
    given = ctx.answer("ledger", object, "the LedgerProducer")
    if not hasattr(given, "entries"):
        raise Unmet(f"`ledger` should be the LedgerProducer, not {type(given).__name__}.")
    entries = cast(Ledger, given).entries
    if len(entries) < FEWEST:
        raise Unmet(f"The ledger has {counted(len(entries), 'record')}. Did it get 200 more while the broker was down?")
    there = {(m.partition(), m.offset(), text_of(m)) for m in filled(ctx, TOPIC)}
    if lost := [e for e in entries if (e.partition, e.offset, e.value) not in there]:
        raise Unmet(f"{TOPIC} lacks {counted(len(lost), 'record')} of the ledger, {lost[0].value!r} for one.")
