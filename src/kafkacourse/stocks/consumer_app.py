"""``python -m kafkacourse.stocks.consumer_app --bootstrap-servers … --book prices.db``: book each price exactly once.

It runs until a signal ends it. The book is a file, or the URL of a PostgreSQL database. Malformed prices go to a
dead-letter topic.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from kafkacourse.stocks.application import EndSignal, client_settings, member_settings
from kafkacourse.stocks.book import Book
from kafkacourse.stocks.database import DatabaseUnavailable
from kafkacourse.stocks.dead_letters import DeadLetters, NotSetAside
from kafkacourse.stocks.loop import read_batches
from kafkacourse.stocks.prices import MalformedStockPrice, deserialize
from kafkacourse.stocks.topics import ClusterUnreachable, UnknownTopic, partition_count

__all__ = ["main"]

_CONNECT_SECONDS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application.

    It finishes the current batch before it ends. SIGKILL leaves no time for that, but does no harm: the book holds a
    batch and the position after it, or neither. Only a dead letter may then be duplicated.

    Parameters
    ----------
    arguments
        The command line's arguments, if None.

    Returns
    -------
    int
        The exit status: 130 after SIGINT, 143 after SIGTERM, and 1 if it couldn't start or continue. The next start
        continues where the book ends.
    """
    options = _parse(arguments)
    end = EndSignal()
    common = client_settings(options.bootstrap_servers, "StockPriceKafkaConsumer")
    consumer = Consumer({**common, **member_settings(options.group, options.instance)})  # the book holds the positions
    producer = Producer({**common, "enable.idempotence": True})
    try:
        for topic in (options.topic, options.dead_letters):
            partition_count(producer, topic, _CONNECT_SECONDS)
        book, dead_letters = Book(options.book), DeadLetters(producer, options.dead_letters)

        def handle(records: Sequence[Message]) -> None:
            prices: list[Message] = []
            malformed: list[Message] = []
            for record in records:
                try:
                    deserialize(record.value())
                    prices.append(record)
                except MalformedStockPrice as error:
                    dead_letters.add(record, str(error))
                    malformed.append(record)
            dead_letters.flush()  # the book may only pass a record by once its dead letter is safe
            book.add_with_positions(prices, left_out=malformed)
            print(f"{len(prices)} prices, {len(malformed)} set aside", flush=True)

        def start_at(partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
            found = book.positions(partitions)
            for p in found:
                print(f"{p.topic} [{p.partition}] from {p.offset if p.offset >= 0 else 'the beginning'}", flush=True)
            return found

        read_batches(consumer, options.topic, handle, stopping=end.arrived, start_at=start_at)
        book.close()
    except (ClusterUnreachable, UnknownTopic, DatabaseUnavailable, NotSetAside) as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    except KafkaException as error:
        print(error.args[0].str(), file=sys.stderr, flush=True)
        return 1
    return end.exit_status


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kafkacourse.stocks.consumer_app", description="Books stock prices until Ctrl-C.")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--topic", default="stock-prices")
    parser.add_argument("--dead-letters", default="stock-prices-dead-letters", metavar="TOPIC")
    parser.add_argument("--group", default="book")
    parser.add_argument("--instance", metavar="NAME", help="the same for each start, but not for two processes at once")
    where = os.environ.get("STOCKS_BOOK", "prices.db")
    help_on_book = "SQLite or PostgreSQL (default: $STOCKS_BOOK, or prices.db)"
    parser.add_argument("--book", default=where, metavar="FILE|URL", help=help_on_book)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
