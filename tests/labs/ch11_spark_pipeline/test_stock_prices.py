"""The latest and the average price: each wrong answer gets its sentence, and right ones pass, exact or rounded."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from decimal import Decimal

import pytest
from confluent_kafka import Producer

from kafkacourse.ch11_spark_pipeline.stock_prices import PRICES, ROUNDS
from kafkacourse.prices import NAMES
from kafkacourse.stocks.prices import StockPrice, serialize
from kafkalab import Cluster
from support import PATIENCE, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_stock_prices"
LATE = StockPrice("IBM", 60, 6)
TRADES = {
    name: [StockPrice(name, 60 + (7 * round_ + place) % 31, (13 * round_ + place) % 100) for round_ in range(2 * ROUNDS)]
    for place, name in enumerate(NAMES)
}
TRADES["IBM"].append(LATE)
AMOUNTS = {name: [price.amount for price in prices] for name, prices in TRADES.items()}

Figure = Callable[[list[Decimal]], Decimal]


def mean(amounts: list[Decimal]) -> Decimal:
    return sum(amounts, Decimal()) / len(amounts)


def latest(amounts: list[Decimal]) -> Decimal:
    return amounts[-1]


@pytest.fixture
def traded(clean: Cluster) -> Cluster:
    """All prices were sent, IBM's late one last, with an older timestamp."""
    create(clean, "stock-prices", 3, 1)
    for topic in ("answers_batch", "answers_stream"):
        create(clean, topic, 1, 1)
    exchange, now = Producer(clean.client_config()), int(time.time() * 1000)
    for name, prices in TRADES.items():
        for number, price in enumerate(prices):
            at = now - 60_000 if price is LATE else now + number
            exchange.produce("stock-prices", serialize(price), key=name, timestamp=at)
    assert exchange.flush(PATIENCE) == 0
    return clean


def answer(cluster: Cluster, topic: str, last: Figure = latest, average: Figure = mean, number: type = float) -> None:
    values = {name: {"latest": number(last(of)), "average": number(average(of))} for name, of in AMOUNTS.items()}
    put(cluster, topic, [(name, json.dumps(value), 0) for name, value in values.items()])


def early(amounts: list[Decimal]) -> Decimal:
    return mean(amounts[:ROUNDS])


def later(amounts: list[Decimal]) -> Decimal:
    return mean(amounts[ROUNDS:])


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'stock-prices' yet" in said and "0 of 6" in said
    create(clean, "stock-prices", 1, 1)
    verdict.says(f"stock-prices was given 0 prices, not {PRICES}", LAB, clean)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"last": max}, "That's its highest price. By what should you choose"),
        ({"last": lambda amounts: amounts[2 * ROUNDS - 1]}, "a price with the newest timestamp. What orders"),
        ({"last": lambda amounts: amounts[ROUNDS - 1]}, "More prices came after that one. When did the batch run?"),
        ({"last": lambda amounts: Decimal(1)}, "Which offset has that price"),
        ({"average": lambda _: mean(sum(AMOUNTS.values(), []))}, "the average of all stocks. Which prices belong together?"),
        ({"average": early}, "the average of its first 5 prices. When did the batch run?"),
        ({"average": lambda amounts: mean([Decimal(int(one)) for one in amounts])}, "What happens to the cents?"),
        ({"average": lambda amounts: mean(amounts[:-1])}, "does your average leave out, or count twice?"),
    ],
)
def test_wrong_batches(traded: Cluster, verdict: Verdict, wrong: dict[str, Figure], said: str) -> None:
    answer(traded, "answers_batch", **wrong)
    verdict.says(said, LAB, traded)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (("SONY", '{"latest": 1, "average": 1}'), "answers_batch has a record with the key 'SONY'"),
        (("IBM", "60.06"), "It should be JSON with two numbers"),
        (("IBM", '{"latest": 60.06}'), "It should be JSON with two numbers"),
    ],
)
def test_other_records(traded: Cluster, verdict: Verdict, record: tuple[str, str], said: str) -> None:
    answer(traded, "answers_batch")
    put(traded, "answers_batch", [(*record, 0)])
    verdict.says(said, LAB, traded)


def test_a_stock_is_left_out(traded: Cluster, verdict: Verdict) -> None:
    put(traded, "answers_batch", [("IBM", '{"latest": 60.06, "average": 1}', 0)])
    verdict.says("answers_batch has no answer for SUN", LAB, traded)


def test_wrong_streams(traded: Cluster, verdict: Verdict) -> None:
    answer(traded, "answers_batch")
    answer(traded, "answers_stream")
    verdict.says("answers_stream has one answer for each stock, as a batch would give it", LAB, traded)
    answer(traded, "answers_stream", average=later)
    verdict.says("The stream knows only the later prices. Where does a stream begin", LAB, traded)
    answer(traded, "answers_stream", last=max)
    verdict.says("Did the stream process everything, and by the same functions?", LAB, traded)


def test_exact_answers(traded: Cluster, verdict: Verdict) -> None:
    answer(traded, "answers_stream", last=lambda amounts: amounts[ROUNDS - 1], average=early)
    answer(traded, "answers_stream")
    answer(traded, "answers_batch")
    verdict.passes(LAB, traded)


def test_rounded_answers_as_text_after_wrong_ones(traded: Cluster, verdict: Verdict) -> None:
    answer(traded, "answers_batch", last=max)
    for average in (early, lambda amounts: round(mean(amounts), 2)):
        answer(traded, "answers_stream", average=average, number=str)
    answer(traded, "answers_batch", average=lambda amounts: round(mean(amounts), 2), number=str)
    verdict.passes(LAB, traded)
