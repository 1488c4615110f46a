"""``python -m kafkacourse.stocks.producer_app --bootstrap-servers …``: run one sender per stock until a signal ends it."""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer

from kafkacourse.stocks.application import EndSignal, client_settings
from kafkacourse.stocks.prices import STOCKS
from kafkacourse.stocks.sender import StockSender
from kafkacourse.stocks.topics import ClusterUnreachable, UnknownTopic, partition_count

__all__ = ["main"]

_LOG_EVERY = 100  # records of each sender
_FLUSH_SECONDS = 10
_CONNECT_SECONDS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application.

    Parameters
    ----------
    arguments
        The command line's arguments, if None.

    Returns
    -------
    int
        The exit status: 0 if Kafka has acknowledged all requested prices, 130 after SIGINT, 143 after SIGTERM, and 1 if
        the application couldn't start or lost a price it had sent.
    """
    options = _parse(arguments)
    end = EndSignal()
    producer = Producer(
        {
            **client_settings(options.bootstrap_servers, "StockPriceKafkaProducer"),
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # chooses the same partition for a key as Java's client
        }
    )
    try:
        partition_count(producer, options.topic, _CONNECT_SECONDS)
    except (ClusterUnreachable, UnknownTopic) as error:
        print(error, file=sys.stderr, flush=True)
        return 1

    log = _DeliveryLog()
    senders = [StockSender(producer, options.topic, stock, count=options.count, on_delivery=log) for stock in STOCKS]
    for sender in senders:
        sender.start()
    while not end.arrived() and any(sender.is_alive() for sender in senders):
        end.wait(0.1)

    # Stop the senders first: what they send after the flush would be lost.
    for sender in senders:
        sender.stop()
    print("Flushing and closing", flush=True)
    producer.flush(_FLUSH_SECONDS)
    sent, delivered, failed = (sum(getattr(sender, what) for sender in senders) for what in ("sent", "delivered", "failed"))
    waiting = sent - delivered - failed  # flush returns fewer: it counts unserved report events, each for many records
    print(f"{sent} sent, {delivered} delivered, {waiting} still waiting", flush=True)
    if waiting:
        producer.purge()  # gives up the rest and reports it; close would wait for it up to delivery.timeout.ms
    producer.close()
    if delivered != sent:
        return 1
    return end.exit_status


class _DeliveryLog:
    """Print every hundredth record of each stock, and each failed one."""

    def __init__(self) -> None:
        self._delivered: Counter[bytes] = Counter()
        self._counting = threading.Lock()  # delivery reports arrive on any thread that polls

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        key, value = message.key() or b"", message.value() or b""
        if error is not None:
            print(f"{key.decode()}: {error.str()}", file=sys.stderr, flush=True)
            return
        with self._counting:
            self._delivered[key] += 1
            due = self._delivered[key] % _LOG_EVERY == 0
        if due:
            _, milliseconds = message.timestamp()
            where = f"{message.topic()} [{message.partition()}] at {message.offset()}, {milliseconds}"
            print(f"{key.decode()} {value.decode()} {where}", flush=True)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="kafkacourse.stocks.producer_app", description="Sends made-up stock prices until Ctrl-C."
    )
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--topic", default="stock-prices")
    parser.add_argument("--count", type=int, metavar="N", help="prices of each stock (default: go on until Ctrl-C)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
