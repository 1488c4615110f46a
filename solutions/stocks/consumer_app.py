"""``python -m stocks.consumer_app --bootstrap-servers … --book prices.db``: books each price exactly once, until it is told to end."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from confluent_kafka import Consumer, Message

from stocks.book import Book
from stocks.loop import read_batches

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application; returns its exit status: 130 after SIGINT, 143 after SIGTERM.

    A batch that is being handled is finished first. SIGKILL leaves no time for that, and does no harm either: the book
    holds a batch and the position after it, or neither.
    """
    options = _parse(arguments)
    ended_by: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        ended_by.append(number)

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)

    book = Book(options.book)
    # With a name of its own it gets its partitions back at once when it was killed.
    static = {"group.instance.id": options.instance} if options.instance else {}
    consumer = Consumer(
        {
            **static,
            "bootstrap.servers": options.bootstrap_servers,
            "client.id": "StockPriceKafkaConsumer",
            "group.id": options.group,
            "enable.auto.commit": False,  # the book says where to go on
            "auto.offset.reset": "earliest",
            "error_cb": lambda error: print(error.str(), file=sys.stderr, flush=True),
            "log_level": 2,
        }
    )

    def handle(records: Sequence[Message]) -> None:
        book.add_with_positions(records)
        print(f"{len(records)} prices", flush=True)

    try:
        read_batches(consumer, options.topic, handle, stopping=lambda: bool(ended_by), start_at=book.positions)
    finally:
        book.close()
    return 128 + ended_by[0] if ended_by else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="stocks.consumer_app", description="Books stock prices until Ctrl-C.")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--topic", default="stock-prices")
    parser.add_argument("--group", default="book")
    parser.add_argument("--instance", metavar="NAME", help="the same for each start, and another one for each process of the group")
    parser.add_argument("--book", default="prices.db", metavar="FILE", help="the database")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
