# Written in the lab 04_delivery.
"""Ways to handle a batch: the order of the steps decides what a crash does to it.

Each function gets the consumer that read the batch and commits nothing by itself, the book, and the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from confluent_kafka import Consumer, Message

from kafkacourse.stocks.book import Book, following

__all__ = [
    "at_least_once",
    "at_most_once",
    "each_partition_at_least_once",
    "each_record_at_least_once",
    "each_record_at_most_once",
    "exactly_once",
]


def at_most_once(consumer: Consumer, book: Book, records: Sequence[Message]) -> None:
    """Commit, then process: unprocessed records aren't read again."""
    consumer.commit(offsets=following(records), asynchronous=False)
    book.add(records)


def at_least_once(consumer: Consumer, book: Book, records: Sequence[Message]) -> None:
    """Process, then commit: uncommitted records are read again."""
    book.add(records)
    consumer.commit(offsets=following(records), asynchronous=False)


def each_record_at_most_once(consumer: Consumer, book: Book, records: Sequence[Message]) -> None:
    """Commit and process each record like `at_most_once`: a crash loses at most one. Slow: one request per record."""
    for record in records:
        consumer.commit(record, asynchronous=False)  # commits the offset after this record
        book.add([record])


def each_record_at_least_once(consumer: Consumer, book: Book, records: Sequence[Message]) -> None:
    """Process and commit each record like `at_least_once`: a crash duplicates at most one. Slow: one request per record."""
    for record in records:
        book.add([record])
        consumer.commit(record, asynchronous=False)


def each_partition_at_least_once(consumer: Consumer, book: Book, records: Sequence[Message]) -> None:
    """Process and commit the batch partition by partition."""
    in_order = sorted(records, key=Message.partition)  # keeps the order within a partition
    for _, part in groupby(in_order, key=Message.partition):
        together = list(part)
        book.add(together)
        consumer.commit(offsets=following(together), asynchronous=False)


def exactly_once(consumer: Consumer, book: Book, records: Sequence[Message]) -> None:
    """Store results and offsets in one database transaction. Start at ``book.positions``; Kafka needs no commit."""
    book.add_with_positions(records)
