"""Questions about stock prices: whether all are there, and whether each is valid."""

from __future__ import annotations

from collections.abc import Callable

from kafkacourse.stocks.prices import STOCKS, MalformedStockPrice, deserialize
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.records import key_of, partitions_of_keys
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["NAMES", "holds_all_stocks", "holds_prices_in_range"]

NAMES = tuple(stock.name for stock in STOCKS)
"""The names of all stocks."""

_QUOTED = 60  # characters of a value in a message


def holds_all_stocks(topic: str) -> Callable[[CheckContext], None]:
    """Return a probe: a topic must hold prices of every stock, and nothing under another key."""

    def probe(ctx: CheckContext) -> None:
        keys = set(partitions_of_keys(filled(ctx, topic)))
        if strange := sorted(keys - set(NAMES)):
            raise Unmet(f"{topic} has records with the key {strange[0]!r}. Which key belongs to a price?")
        if missing := [name for name in NAMES if name not in keys]:
            raise Unmet(f"{topic} has no price of {missing[0]}. It should have prices of all {counted(len(NAMES), 'stock')}.")

    return probe


def holds_prices_in_range(topic: str) -> Callable[[CheckContext], None]:
    """Return a probe: each value must be a valid price in its stock's range, with the stock's name as its key."""
    ranges = {stock.name: (stock.low.dollars, stock.high.dollars) for stock in STOCKS}

    def probe(ctx: CheckContext) -> None:
        for message in filled(ctx, topic):
            key, text = key_of(message), text_of(message)[:_QUOTED]
            try:
                price = deserialize(message.value())
            except MalformedStockPrice as error:
                raise Unmet(f"A value of {key} isn't a price: {text!r} ({error}). Did you use serialize()?") from error
            if price.name != key:
                raise Unmet(f"A price of {price.name} has the key {key}. Which key belongs to a price?")
            low, high = ranges.get(key, (0, 0))
            if not low <= price.dollars <= high:
                raise Unmet(f"A price of {key} is {price}, but {key} costs {low} to {high} dollars. Where does it come from?")

    return probe
