"""A dead-letter topic, and callbacks that choose where a consumer starts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import cast

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, Consumer, KafkaError, Message, TopicPartition

from kafkacourse.stocks.prices import MalformedStockPrice, StockPrice, deserialize
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.couriers import Courier
from kafkalab.checks.groups import Place, has_read_everything, place_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.requirements import Probe
from kafkalab.checks.topics import existing, filled

__all__ = ["lab"]

PRICES, DEAD = "stock-prices", "stock-prices-dead-letters"
NEW_YEAR = 1_704_067_200_000

lab = Lab("04_positions")

# -- 1: dead letters ------------------------------------------------------------------------------------------------

dead_letters = lab.add_check(
    "04_dead_letters",
    "The latest prices, and the bad records",
    hints=(
        "`deserialize` raises `MalformedStockPrice`; its text is the reason.",
        "`producer.produce(topic, key=…, value=…, headers={…})`; headers are text or bytes, so turn numbers into text.",
        "Before `handle` returns, call `producer.flush(10)`: only then may the batch be committed. It returns how many records "
        "still wait.",
        "A record that the producer gave up doesn't wait any more: only `on_delivery=lambda error, message: …` is told. Keep "
        "the errors, and look at them after `flush`.",
    ),
)


def _price(value: bytes | None) -> StockPrice | None:
    """Return the price, or None for what isn't a stock price."""
    try:
        return deserialize(value)
    except MalformedStockPrice:
        return None


@dead_letters.requires("The latest price of each stock is known")
def latest_prices_are_right(ctx: CheckContext) -> None:
    given = ctx.answer("prices", dict[str, str | StockPrice], "the latest price of each stock as text: {'IBM': 'IBM 90.05', …}")
    wanted = {price.name: str(price) for m in filled(ctx, PRICES) if (price := _price(m.value()))}
    if missing := sorted(wanted.keys() - given.keys()):
        raise Unmet(f"There is no price of {missing[0]}. Does something stop your loop?")
    if wrong := sorted(name for name in wanted if str(given[name]) != wanted[name]):
        raise Unmet(f"{given[wrong[0]]} isn't the latest price of {wrong[0]}. Which of two records of a stock do you keep?")


def _place_in_headers(letter: Message) -> Place:
    given = cast("list[tuple[str, bytes | None]]", letter.headers() or [])
    headers = {name: (text or b"").decode(errors="replace") for name, text in given}
    if not headers.keys() >= {"reason", "topic", "partition", "offset"}:
        raise Unmet(f"A dead letter has the headers {', '.join(sorted(headers)) or 'none'}. Which four does the text ask for?")
    if not (headers["partition"].isdecimal() and headers["offset"].isdecimal()):
        raise Unmet(
            f"A dead letter says partition {headers['partition']!r}, offset {headers['offset']!r}. Both should be numbers as "
            "text."
        )
    return int(headers["partition"]), int(headers["offset"])


@dead_letters.requires("Every record that isn't a stock price is in the dead-letter topic, unchanged")
def bad_records_are_set_aside(ctx: CheckContext) -> None:
    existing(ctx, DEAD)
    bad = {place_of(m): m for m in ctx.records(PRICES) if not _price(m.value())}
    if not bad:
        raise Unmet(f"{PRICES} holds nothing but stock prices. Did you run the cell that sends the five bad records?")
    letters = {_place_in_headers(m): m for m in ctx.records(DEAD)}
    if missing := sorted(bad.keys() - letters.keys()):
        raise Unmet(
            f"Offset {missing[0][1]} of partition {missing[0][0]} isn't a stock price and isn't in {DEAD} "
            f"({len(missing)} of {len(bad)} are missing)."
        )
    if extra := sorted(letters.keys() - bad.keys()):
        raise Unmet(f"{DEAD} names offset {extra[0][1]} of partition {extra[0][0]}, which is a stock price.")
    for place, m in letters.items():
        if (m.key(), m.value()) != (bad[place].key(), bad[place].value()):
            raise Unmet(
                f"The dead letter for offset {place[1]} of partition {place[0]} has another key or value than the record. Send "
                "both as they came, even if one is null."
            )


dead_letters.requires("The group latest-prices has committed everything")(has_read_everything("latest-prices", PRICES))


def _bad_record() -> Message:
    return Message(topic=PRICES, partition=0, offset=7, key=b"IBM", value=b"{}", timestamp=(1, NEW_YEAR))


@dead_letters.requires("When handle returns, the brokers have the dead letters")
def dead_letters_are_safe(ctx: CheckContext) -> None:
    make = ctx.function("handler", "your class")
    settings = ctx.cluster.client_config()

    def handle(courier: Courier) -> Exception | None:
        try:
            make(courier, DEAD).handle([_bad_record()])
        except Exception as error:
            return error
        return None

    courier = Courier(settings, _bad_record())
    if (error := handle(courier)) is not None:
        raise Unmet(f"Given a record that isn't a stock price, handle raised {type(error).__name__}: {error}")
    if not courier.sent:
        raise Unmet("Given a record that isn't a stock price, handle produced nothing.")
    if not courier.flushed:
        raise Unmet(
            "handle returned and flushed nothing. The batch is committed next: what happens to the dead letter in a crash?"
        )
    if handle(Courier(settings, _bad_record(), answers=False)) is None:
        raise Unmet("No broker answered, and handle returned as if everything was fine. What does flush() return?")
    if handle(Courier(settings, _bad_record(), KafkaError(KafkaError._MSG_TIMED_OUT))) is None:
        raise Unmet("The producer gave up a dead letter and told on_delivery, and handle returned as if everything was fine.")


# -- 2: where to start ----------------------------------------------------------------------------------------------

positions = lab.add_check(
    "04_positions",
    "Begin where you like",
    hints=(
        "Inside: `def on_assign(consumer, partitions)`. Set `partition.offset` of each, then `consumer.assign(partitions)`.",
        "`OFFSET_BEGINNING` and `OFFSET_END` can be given as offsets.",
        "`consumer.offsets_for_times([TopicPartition(topic, partition, milliseconds)], timeout=10)` returns partitions with "
        "offsets.",
        "Keep a set of the partitions that you have seen, beside `on_assign`. Assign those that are in it as they come.",
    ),
)


def _ends(ctx: CheckContext) -> dict[int, int]:
    existing(ctx, PRICES)
    return ctx.end_offsets(PRICES)


def _since(ctx: CheckContext) -> dict[int, int]:
    found = _ends(ctx)
    for m in reversed(ctx.records(PRICES)):
        partition, offset = place_of(m)
        if m.timestamp()[1] >= NEW_YEAR + 70:
            found[partition] = offset
    return found


def _begun(where: str, wanted: Callable[[CheckContext], Mapping[int, int]], question: str) -> Probe:
    """Return a probe: the first offset of each partition must be right for one place to start."""

    def probe(ctx: CheckContext) -> None:
        given = ctx.answer("begun", dict[str, dict[int, int]], "the first offset of each partition, for each place to start")
        if where not in given:
            raise Unmet(f"`begun` has no entry {where!r}.")
        right = wanted(ctx)
        for partition in sorted(right):
            if partition not in given[where]:
                raise Unmet(f"{where}: nothing came from partition {partition}.")
            if given[where][partition] != right[partition]:
                raise Unmet(f"{where}: partition {partition} started at offset {given[where][partition]}. {question}")

    return probe


positions.requires("The beginning")(
    _begun("beginning", lambda ctx: dict.fromkeys(_ends(ctx), 0), "What decides where to start, if not the committed offset?")
)
positions.requires("The end")(_begun("end", _ends, "The end is where the next record will be written."))
positions.requires("An offset")(
    _begun("offset 7", lambda ctx: dict.fromkeys(_ends(ctx), 7), "Do you set the offset before you call `assign`?")
)
positions.requires("A point in time")(
    _begun("70 ms after New Year", _since, "Which record of a partition is the first that isn't older? In milliseconds.")
)
positions.requires("A point in time after the last record, which is the end")(
    _begun("a day later", _ends, "What does a lookup return for a time that hasn't come yet?")
)


class _Rebalanced(Consumer):
    """A consumer of the learner's cluster. A probe assigns its partitions, and it records where it was told to start."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(dict(settings))
        self._starts: dict[int, int] = {}

    def rebalance(self, callback: Callable[[Consumer, list[TopicPartition]], object], *partitions: int) -> dict[int, int]:
        """Return where the callback starts each of these partitions; OFFSET_INVALID stands for the committed offset."""
        super().unassign()
        given = [TopicPartition(PRICES, partition) for partition in partitions]
        # If a callback assigns nothing, the client assigns the group's committed offsets.
        self._starts = dict.fromkeys(partitions, OFFSET_INVALID)
        callback(self, given)
        return {p: OFFSET_INVALID if offset == OFFSET_STORED else offset for p, offset in self._starts.items()}

    def assign(self, partitions: list[TopicPartition]) -> None:
        super().assign(partitions)
        self._starts = {p.partition: p.offset for p in partitions}

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        super().incremental_assign(partitions)
        self._starts |= {p.partition: p.offset for p in partitions}

    def seek(self, partition: TopicPartition) -> None:
        super().seek(partition)
        self._starts[partition.partition] = partition.offset


@positions.requires("A callback acts only the first time that a partition is assigned")
def callbacks_act_once(ctx: CheckContext) -> None:
    given = ctx.answer("callbacks", dict[str, Callable[..., object]], "new callbacks of yours, each with a name")
    if len(existing(ctx, PRICES)) < 2:
        raise Unmet(f"{PRICES} has one partition. Two are needed to try a rebalance.")
    settings = ctx.cluster.client_config(group_id=f"check-{uuid.uuid4().hex[:6]}", enable_auto_commit=False)
    for name, callback in given.items():
        consumer = _Rebalanced(settings)
        try:
            first, again, more = (consumer.rebalance(callback, *partitions) for partitions in ((0,), (0,), (0, 1)))
        except Exception as error:
            raise Unmet(f"{name}: your callback raised {type(error).__name__}: {error}") from error
        finally:
            consumer.close()
        if first.get(0, OFFSET_INVALID) == OFFSET_INVALID:
            raise Unmet(
                f"{name}: a partition is assigned for the first time, and your callback starts at the committed offset."
            )
        if again != {0: OFFSET_INVALID} or more.get(0) != OFFSET_INVALID:
            raise Unmet(
                f"{name}: after a rebalance the same partition is assigned again, and your callback sends it back again."
            )
        if more.get(1, OFFSET_INVALID) == OFFSET_INVALID:
            raise Unmet(f"{name}: a second partition is assigned later, for the first time, and your callback ignores it.")
