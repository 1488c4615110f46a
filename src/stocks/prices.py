"""Stock prices, and how they are written into records."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from decimal import Decimal

__all__ = ["STOCKS", "MalformedStockPrice", "Stock", "StockPrice", "deserialize", "serialize"]

_LIMIT = 10**12  # what any database can hold


class MalformedStockPrice(ValueError):
    """Bytes that are not a stock price; the message says why."""


@dataclass(frozen=True, slots=True)
class StockPrice:
    """What a share costs at a moment.

    Attributes
    ----------
    name
        The stock's symbol.
    dollars, cents
        The price; 9 cents are ``.09``.

    Raises
    ------
    ValueError
        For a price that cannot be: no name that can be printed, less than 0 dollars, cents that are not 0 to 99.
    """

    name: str
    dollars: int
    cents: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise ValueError(f"a stock has a name, not {self.name!r}")
        for what, value in (("dollars", self.dollars), ("cents", self.cents)):
            if type(value) is not int or value < 0:  # True is an int, too, for isinstance
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
    """Write a stock price into a record.

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
    """Read the stock price in a record.

    Parameters
    ----------
    value
        The record's value.

    Returns
    -------
    StockPrice
        What `serialize` was given.

    Raises
    ------
    MalformedStockPrice
        When there is no value, it is not JSON, or not a stock price.
    """
    if value is None:
        raise MalformedStockPrice("the record has no value")
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or a thousand brackets
        raise MalformedStockPrice(f"not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.keys() != {"name", "dollars", "cents"}:
        raise MalformedStockPrice("not an object with the fields name, dollars and cents")
    try:
        return StockPrice(**fields)
    except ValueError as error:
        raise MalformedStockPrice(str(error)) from error


@dataclass(frozen=True, slots=True)
class Stock:
    """A stock and the range of its made-up prices: dollars and cents are drawn independently, each bound included."""

    name: str
    low: StockPrice
    high: StockPrice

    def price(self, chance: random.Random) -> StockPrice:
        """Draw a price.

        Parameters
        ----------
        chance
            Where the luck comes from; one with a seed draws the same prices again.

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
