# Written in the lab 04_positions.
"""The latest price of each stock, and a topic for records that are no stock price: none lost, and none stops the consumer."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message, Producer

from stocks.prices import MalformedStockPrice, StockPrice, deserialize

__all__ = ["LatestPrices"]

_LONGEST = 200  # a reason may quote what is wrong, however long that is


class LatestPrices:
    """Keeps the latest price of each stock.

    Parameters
    ----------
    producer
        Sends what is malformed to `dead_letters`, as it came: same key, same bytes. Headers say why, and where it stood.
    dead_letters
        A topic.

    Attributes
    ----------
    prices
        The latest price by symbol.
    """

    def __init__(self, producer: Producer, dead_letters: str) -> None:
        self.prices: dict[str, StockPrice] = {}
        self._producer = producer
        self._dead_letters = dead_letters

    def handle(self, records: Sequence[Message]) -> None:
        """Take a batch in. On return it may be committed: what was set aside is with Kafka.

        Raises
        ------
        RuntimeError
            When something malformed could not be set aside. Do not commit then.
        """
        failed: list[str] = []
        for record in records:
            try:
                price = deserialize(record.value())
            except MalformedStockPrice as error:
                self._set_aside(record, str(error), failed)
            else:
                self.prices[price.name] = price
        if self._producer.flush(10) or failed:
            raise RuntimeError(f"not set aside: {', '.join(failed) or 'no answer within 10 s'}")

    def _set_aside(self, record: Message, why: str, failed: list[str]) -> None:
        place = {"topic": record.topic(), "partition": str(record.partition()), "offset": str(record.offset())}
        self._producer.produce(
            self._dead_letters,
            key=record.key(),
            value=record.value(),
            headers={"reason": why[:_LONGEST], **place},
            on_delivery=lambda error, _: failed.append(error.str()) if error else None,
        )
