"""The latest and the average price of each stock: by a batch and by a stream, equal to what the topic says."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from confluent_kafka import Message

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkacourse.prices import NAMES
from kafkacourse.stocks.prices import deserialize
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, BATCH, STREAM = "stock-prices", "answers_batch", "answers_stream"
ROUNDS = 5  # of prices of each stock, before the stream and after it
PRICES = 2 * ROUNDS * len(NAMES) + 1

lab = Lab("11_stock_prices")

check = lab.add_check(
    "11_stock_prices",
    "Work out the latest and the average price of each stock",
    hints=(
        "max_by(x, y) is the x of the row with the highest y. What grows from each record of a stock to its next one?",
        "groupBy comes before agg, and agg takes as many aggregates as you like: avg is another one.",
        "read(spark.readStream) gives a stream, and it ends with writeStream and start(). The functions between are the same.",
        "A batch starts with read(spark.read), and ends with write and then save. It knows only what is there when it runs.",
    ),
)


class Answer(NamedTuple):
    """What a record says about a stock."""

    latest: Decimal
    average: Decimal


class Trades(NamedTuple):
    """All prices of a stock, in the order of their offsets; those with its newest timestamp; and the prices of all stocks."""

    prices: list[Decimal]
    newest: set[Decimal]
    everyone: list[Decimal]


def _mean(prices: list[Decimal]) -> Decimal:
    return sum(prices, Decimal()) / len(prices)


def _trades(ctx: CheckContext) -> dict[str, Trades]:
    """Return the trades of each stock. Records of a key are in one partition, and are read in its order."""
    read: dict[str, list[tuple[int, int, Decimal]]] = defaultdict(list)
    for record in ctx.records(SOURCE):
        offset = record.offset()
        assert offset is not None  # because it was read
        read[key_of(record)].append((offset, record.timestamp()[1], deserialize(record.value()).amount))
    everyone = [amount for trades in read.values() for *_, amount in trades]
    found = {}
    for name, trades in read.items():
        newest = max(at for _, at, _ in trades)
        prices = [amount for *_, amount in sorted(trades)]
        found[name] = Trades(prices, {amount for _, at, amount in trades if at == newest}, everyone)
    return found


def _answer(record: Message) -> Answer:
    try:
        value = json.loads(text_of(record), parse_float=Decimal)
        return Answer(Decimal(value["latest"]), Decimal(value["average"]))
    except (ValueError, TypeError, KeyError, InvalidOperation):
        raise Unmet(
            f"{record.topic()} has the value {quoted(text_of(record))} for {key_of(record)}. It should be JSON with two "
            "numbers, latest and average. rows() makes it from a table with these columns."
        ) from None


def _table(ctx: CheckContext, topic: str) -> dict[str, Answer]:
    """Return the last answer for each stock."""
    found = {key_of(record): record for record in filled(ctx, topic)}
    if strange := sorted(found.keys() - set(NAMES)):
        raise Unmet(f"{topic} has a record with the key {quoted(strange[0])}. The key is a stock's name.")
    if missing := [name for name in NAMES if name not in found]:
        raise Unmet(f"{topic} has no answer for {missing[0]}. There are {counted(len(NAMES), 'stock')}: what leaves some out?")
    return {name: _answer(record) for name, record in found.items()}


def _equal(one: Decimal, other: Decimal) -> bool:
    """Whether two amounts are the same to the cent: an average may be rounded."""
    return abs(one - other) <= Decimal("0.005001")


@check.requires("All prices were sent, once")
def prices_were_sent(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    found = ctx.given(SOURCE)
    if found != PRICES:
        raise Unmet(
            f"{SOURCE} was given {counted(found, 'price')}, not {PRICES}. Run each cell that sends prices once. {RUN_AGAIN}"
        )


@check.requires(f"{BATCH} has an answer for each stock", after=prices_were_sent)
def batch_answers(ctx: CheckContext) -> None:
    _table(ctx, BATCH)


@check.requires("Each latest price is the one in the stock's last record", after=batch_answers)
def latest_is_right(ctx: CheckContext) -> None:
    trades = _trades(ctx)
    wrong = [
        (found.latest, trades[name], name)
        for name, found in _table(ctx, BATCH).items()
        if found.latest != trades[name].prices[-1]
    ]
    if not wrong:
        return
    say = f"{BATCH} has {wrong[0][0]} as the latest price of {wrong[0][2]}."
    if all(latest == max(of.prices) for latest, of, _ in wrong):
        raise Unmet(f"{say} That's its highest price. By what should you choose the record?")
    if all(latest in of.newest for latest, of, _ in wrong):
        raise Unmet(f"{say} That's a price with the newest timestamp. What orders the records of a partition?")
    if all(latest == of.prices[ROUNDS - 1] for latest, of, _ in wrong):
        raise Unmet(f"{say} More prices came after that one. When did the batch run?")
    raise Unmet(f"{say} Which offset has that price, and which offset does the stock's last record have?")


@check.requires("Each average is over all prices of the stock, and of no other", after=batch_answers)
def average_is_right(ctx: CheckContext) -> None:
    trades = _trades(ctx)
    for name, found in _table(ctx, BATCH).items():
        prices = trades[name].prices
        if _equal(found.average, _mean(prices)):
            continue
        say = f"{BATCH} has {found.average} as the average price of {name}."
        if _equal(found.average, _mean(trades[name].everyone)):
            raise Unmet(f"{say} That's the average of all stocks. Which prices belong together?")
        if _equal(found.average, _mean(prices[:ROUNDS])):
            raise Unmet(f"{say} That's the average of its first {ROUNDS} prices. When did the batch run?")
        if _equal(found.average, _mean([Decimal(int(price)) for price in prices])):
            raise Unmet(f"{say} That's the average of its dollars. What happens to the cents?")
        raise Unmet(f"{say} It has {counted(len(prices), 'price')}. Which of them does your average leave out, or count twice?")


@check.requires(f"{STREAM} comes to the same answers", after=(latest_is_right, average_is_right))
def stream_agrees(ctx: CheckContext) -> None:
    trades, batch = _trades(ctx), _table(ctx, BATCH)
    for name, found in _table(ctx, STREAM).items():
        if found.latest == batch[name].latest and _equal(found.average, batch[name].average):
            continue
        say = f"{STREAM} says {found.latest} and {found.average} for {name}, and {BATCH} says otherwise."
        if _equal(found.average, _mean(trades[name].prices[ROUNDS:])):
            raise Unmet(f"{say} The stream knows only the later prices. Where does a stream begin, if you don't say so?")
        raise Unmet(f"{say} Did the stream process everything, and by the same functions?")


@check.requires("The stream was at work while prices arrived", after=stream_agrees)
def stream_was_at_work(ctx: CheckContext) -> None:
    answers: dict[str, set[Answer]] = defaultdict(set)
    for record in filled(ctx, STREAM):
        answers[key_of(record)].add(_answer(record))
    if all(len(found) < 2 for found in answers.values()):
        raise Unmet(
            f"{STREAM} has one answer for each stock, as a batch would give it. Did the stream run before the second prices "
            f"came? {RUN_AGAIN}"
        )
