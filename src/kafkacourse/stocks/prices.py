"""Stock prices, and how to write them into records and read them back."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from decimal import Decimal

__all__ = ["STOCKS", "MalformedStockPrice", "Stock", "StockPrice", "deserialize", "serialize"]

_LIMIT = 10**12  # every database can hold this


class MalformedStockPrice(ValueError):
    """Bytes that aren't a stock price. The message says why."""


@dataclass(frozen=True, slots=True)
class StockPrice:
    """The price of one share at one moment.

    Attributes
    ----------
    name
        The stock's symbol.
    dollars, cents
        The price; 9 cents are ``.09``.

    Raises
    ------
    ValueError
        If the price is impossible: an unprintable or empty name, dollars below 0, or cents outside 0 to 99.
    """

    name: str
    dollars: int
    cents: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise ValueError(f"a stock has a name, not {self.name!r}")
        for what, value in (("dollars", self.dollars), ("cents", self.cents)):
            if type(value) is not int or value < 0:  # isinstance would accept True as an int
                raise ValueError(f"{what} are a whole number from 0, not {value!r}")
        if self.dollars >= _LIMIT:
            raise ValueError("dollars are too many to be a price")
        if self.cents > 99:
            raise ValueError(f"cents are 0 to 99, not {self.cents}")

    @property
    def amount(self) -> Decimal:
        """The price in dollars."""
        return Decimal(100 * self.dollars + self.cents) / 100

    def __str__(self) -> str:
        return f"{self.name} {self.dollars}.{self.cents:02}"


def serialize(price: StockPrice) -> bytes:
    """Serialize a stock price as a record's value.

    Parameters
    ----------
    price
        The price.

    Returns
    -------
    bytes
        The record's value: JSON with the fields ``cents``, ``dollars`` and ``name``.
    """
    return json.dumps(asdict(price), sort_keys=True).encode()


def deserialize(value: bytes | None) -> StockPrice:
    """Deserialize the stock price in a record's value.

    Parameters
    ----------
    value
        The record's value.

    Returns
    -------
    StockPrice
        The price that `serialize` got.

    Raises
    ------
    MalformedStockPrice
        If there is no value, or it isn't JSON, or isn't a stock price.
    """
    if value is None:
        raise MalformedStockPrice("the record has no value")
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or a thousand nested brackets
        raise MalformedStockPrice(f"not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.keys() != {"name", "dollars", "cents"}:
        raise MalformedStockPrice("not an object with the fields name, dollars and cents")
    try:
        return StockPrice(**fields)
    except ValueError as error:
        raise MalformedStockPrice(str(error)) from error


@dataclass(frozen=True, slots=True)
class Stock:
    """A stock and the range of its made-up prices. Dollars and cents are drawn independently, bounds included."""

    name: str
    low: StockPrice
    high: StockPrice

    def price(self, chance: random.Random) -> StockPrice:
        """Draw a random price.

        Parameters
        ----------
        chance
            The random generator. With the same seed it draws the same prices.

        Returns
        -------
        StockPrice
            A price in the stock's range.
        """
        cents = sorted((self.low.cents, self.high.cents))
        return StockPrice(self.name, chance.randint(self.low.dollars, self.high.dollars), chance.randint(*cents))


def _stock(name: str, low: tuple[int, int] = (50, 10), high: tuple[int, int] = (100, 99)) -> Stock:
    return Stock(name, StockPrice(name, *low), StockPrice(name, *high))


STOCKS: tuple[Stock, ...] = (
    _stock("IBM"),
    _stock("SUN"),
    _stock("GOOG", (400, 10), (500, 99)),
    _stock("INEL"),
    _stock("UBER", (50, 0), (1000, 99)),
    *(_stock(name) for name in ("ABC", "XYZ", "DEF", "AAA", "BBB", "CCC", "DDD", "EEE", "FFF")),
)
"""All stocks that are traded here."""
