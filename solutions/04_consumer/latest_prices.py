# Written in the lab 04_positions.
"""Keep the latest price of each stock, from a topic that also holds other records."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message, Producer

from kafkacourse.stocks.dead_letters import DeadLetters
from kafkacourse.stocks.prices import MalformedStockPrice, StockPrice, deserialize

__all__ = ["LatestPrices"]


class LatestPrices:
    """Keep the latest price of each stock.

    Parameters
    ----------
    producer
        Sends malformed records to `dead_letters`.
    dead_letters
        The topic for malformed records.

    Attributes
    ----------
    prices
        The latest price by symbol.
    """

    def __init__(self, producer: Producer, dead_letters: str) -> None:
        self.prices: dict[str, StockPrice] = {}
        self._dead_letters = DeadLetters(producer, dead_letters)

    def handle(self, records: Sequence[Message]) -> None:
        """Process a batch. After it returns you may commit the batch: Kafka has every dead letter.

        Parameters
        ----------
        records
            The batch.

        Raises
        ------
        NotSetAside
            If a malformed record couldn't be sent to the dead-letter topic.
        """
        for record in records:
            try:
                price = deserialize(record.value())
            except MalformedStockPrice as error:
                self._dead_letters.add(record, str(error))
            else:
                self.prices[price.name] = price
        self._dead_letters.flush()
