"""Fourteen senders and three signals: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

import pytest
from confluent_kafka import murmur2

from kafkacourse.stocks import STOCKS
from kafkalab import Cluster
from support import Record, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "03_stock_senders"
SHUTDOWN = "03_shutdown"


def as_java(name: str) -> int:
    return murmur2(name.encode(), 3)


def prices(name: str = "", value: str = "", partition: int | None = None) -> list[Record]:
    """A right price of every stock; of one of them another value, or in another partition."""
    fitting = {"GOOG": 450, "UBER": 700}

    def one(stock: str) -> Record:
        right = f'{{"cents": 50, "dollars": {fitting.get(stock, 60)}, "name": "{stock}"}}'
        mine = stock == name
        return stock, value if mine and value else right, partition if mine and partition is not None else as_java(stock)

    return [one(stock) for stock in [stock.name for stock in STOCKS]]


def test_stock_senders_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "stock-prices", 3)
    verdict.says("stock-prices is empty", LAB, clean, sent=0)


def test_stock_senders_right_and_flushed_too_early(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "stock-prices", 3)
    put(clean, "stock-prices", prices() * 100, enable_idempotence=True)
    verdict.passes(LAB, clean, sent=1400)
    verdict.says("The senders sent 1417 prices, and stock-prices has 1400", LAB, clean, sent=1417)
    verdict.says("Did others send, too?", LAB, clean, sent=1000)
    put(clean, "stock-prices", prices())
    verdict.says("14 records of stock-prices came in batches without a producer id", LAB, clean, sent=1414)


@pytest.mark.parametrize(
    ("records", "says"),
    [
        (prices("IBM", "IBM 60.50"), "A value of IBM isn't a price: 'IBM 60.50'"),
        (prices("IBM", '{"name": "IBM"}'), "not an object with the fields name, dollars and cents"),
        (prices("IBM", '{"cents": 50, "dollars": 60, "name": "SUN"}'), "A price of SUN has the key IBM"),
        (prices("IBM", '{"cents": 50, "dollars": 500, "name": "IBM"}'), "IBM costs 50 to 100 dollars"),
        (prices("IBM", '{"cents": -9, "dollars": 60, "name": "IBM"}'), "A value of IBM isn't a price"),
        (prices("IBM", partition=0), "where Java's producer wouldn't put it"),
        ([*prices(), ("IBM", prices()[0][1], 0)], "Records of IBM are in partitions 0 and 2"),
        (prices()[1:], "stock-prices has no price of IBM"),
        ([*prices(), (None, "{}", 0)], "with the key '(no key)'"),
    ],
)
def test_stock_senders_wrong_records(clean: Cluster, verdict: Verdict, records: list[Record], says: str) -> None:
    create(clean, "stock-prices", 3)
    put(clean, "stock-prices", records)
    verdict.says(says, LAB, clean, sent=len(records))


def test_shutdown(clean: Cluster, verdict: Verdict) -> None:
    for name in ("sigint", "sigterm", "sigkill"):
        create(clean, f"ended-by-{name}", 3)
        put(clean, f"ended-by-{name}", prices())
    right = {"SIGINT": (130, 14), "SIGTERM": (143, 14), "SIGKILL": (-9, None)}
    verdict.passes(SHUTDOWN, clean, endings=right)
    verdict.passes(SHUTDOWN, clean, endings={**right, "SIGKILL": [137, None]})
    for wrong, says in (
        ({}, "`endings` is empty"),
        ({"SIGTERM": (143, 14)}, "`endings` has no 'SIGINT'"),
        ({**right, "SIGINT": (143, 14)}, "Did you send that signal, and no other?"),
        ({**right, "SIGTERM": (None, 14)}, "no exit status for SIGTERM"),
        ({**right, "SIGTERM": (143, 20)}, "has 20 records sent until SIGTERM, and ended-by-sigterm has 14"),
        ({**right, "SIGINT": (130, None)}, "doesn't say how many"),
        ({**right, "SIGKILL": (-9, 14)}, "A killed process prints no last line"),
    ):
        verdict.says(says, SHUTDOWN, clean, endings=wrong)
