# Written in the lab 04_positions.
"""The latest price of each stock, from a topic in which not everything is a stock price."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message, Producer

from stocks.dead_letters import DeadLetters
from stocks.prices import MalformedStockPrice, StockPrice, deserialize

__all__ = ["LatestPrices"]


class LatestPrices:
    """Keeps the latest price of each stock.

    Parameters
    ----------
    producer
        Sends what is malformed to `dead_letters`.
    dead_letters
        A topic.

    Attributes
    ----------
    prices
        The latest price by symbol.
    """

    def __init__(self, producer: Producer, dead_letters: str) -> None:
        self.prices: dict[str, StockPrice] = {}
        self._dead_letters = DeadLetters(producer, dead_letters)

    def handle(self, records: Sequence[Message]) -> None:
        """Take a batch in. On return it may be committed: what was set aside is with Kafka.

        Parameters
        ----------
        records
            The batch.

        Raises
        ------
        NotSetAside
            When something malformed could not be set aside.
        """
        for record in records:
            try:
                price = deserialize(record.value())
            except MalformedStockPrice as error:
                self._dead_letters.add(record, str(error))
            else:
                self.prices[price.name] = price
        self._dead_letters.flush()
