# Written in the lab 04_positions.
"""A topic for records that are no stock price: none lost, and none stops the consumer."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message, Producer

from stocks.prices import MalformedStockPrice, StockPrice, deserialize

__all__ = ["DeadLetters", "LatestPrices", "NotSetAside"]

_LONGEST = 200  # a reason may quote what is wrong, however long that is


class NotSetAside(RuntimeError):
    """A record that cannot be processed is not with Kafka either. Do not commit."""


class DeadLetters:
    """Sends what cannot be processed to a topic, as it came: same key, same bytes. Headers say why, and where it stood.

    Parameters
    ----------
    producer
        Sends it.
    topic
        Where to.
    """

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._failed: list[str] = []

    def add(self, record: Message, why: str) -> None:
        """Set a record aside; `flush` tells whether it is there.

        Parameters
        ----------
        record
            What cannot be processed.
        why
            What is wrong with it, in words.
        """
        place = {"topic": record.topic(), "partition": str(record.partition()), "offset": str(record.offset())}
        self._producer.produce(
            self._topic,
            key=record.key(),
            value=record.value(),
            headers={"reason": why[:_LONGEST], **place},
            on_delivery=lambda error, _: self._failed.append(error.str()) if error else None,
        )

    def flush(self) -> None:
        """Wait until all that was set aside is with Kafka.

        Raises
        ------
        NotSetAside
            When some of it is not.
        """
        waiting = self._producer.flush(10)
        failed, self._failed = self._failed, []
        if waiting or failed:
            raise NotSetAside(f"not set aside: {', '.join(failed) or 'no answer within 10 s'}")


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
