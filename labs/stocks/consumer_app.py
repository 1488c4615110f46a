"""``python -m stocks.consumer_app --bootstrap-servers … --book prices.db``: books each price exactly once, until it is told to end.

The book is a file, or the URL of a PostgreSQL database.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from confluent_kafka import Consumer, Message

from stocks.book import Book
from stocks.database import DatabaseUnavailable
from stocks.loop import read_batches
from stocks.prices import MalformedStockPrice
from stocks.topics import ClusterUnreachable, UnknownTopic, partition_count

__all__ = ["main"]

_CONNECT_SECONDS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application.

    A batch that is being handled is finished first. SIGKILL leaves no time for that, and does no harm either: the book
    holds a batch and the position after it, or neither.

    Returns
    -------
    int
        Its exit status: 130 after SIGINT, 143 after SIGTERM, and 1 if it could not begin or go on. Started again, it goes on where
        its book ends.
    """
    options = _parse(arguments)
    ended_by: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        ended_by.append(number)

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)

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
    try:
        partition_count(consumer, options.topic, _CONNECT_SECONDS)  # type: ignore[arg-type] - asks as a producer does
        book = Book(options.book)

        def handle(records: Sequence[Message]) -> None:
            book.add_with_positions(records)
            print(f"{len(records)} prices", flush=True)

        read_batches(consumer, options.topic, handle, stopping=lambda: bool(ended_by), start_at=book.positions)
        book.close()
    except (ClusterUnreachable, UnknownTopic, DatabaseUnavailable, MalformedStockPrice) as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    return 128 + ended_by[0] if ended_by else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="stocks.consumer_app", description="Books stock prices until Ctrl-C.")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--topic", default="stock-prices")
    parser.add_argument("--group", default="book")
    parser.add_argument("--instance", metavar="NAME", help="the same for each start, and another one for each process of the group")
    where = os.environ.get("STOCKS_BOOK", "prices.db")
    parser.add_argument("--book", default=where, metavar="FILE|URL", help="SQLite or PostgreSQL (default: $STOCKS_BOOK, or prices.db)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
