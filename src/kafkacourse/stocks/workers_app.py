"""``python -m kafkacourse.stocks.workers_app --bootstrap-servers …``: note prices, several at once, until a signal ends it.

Your class `Contiguous` decides which offsets it commits. It's read from `contiguous.py`, in the folder where you start
the application.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import threading
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message

from kafkacourse.stocks.application import EndSignal, client_settings, member_settings
from kafkacourse.stocks.journal import Journal
from kafkacourse.stocks.topics import ClusterUnreachable, UnknownTopic, partition_count
from kafkacourse.stocks.workers import WorkerPool

__all__ = ["main"]

_CONNECT_SECONDS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the application.

    At the end it finishes the prices in progress. After SIGKILL it processes them again, and also prices that finished
    out of order. It doesn't look inside the records: it notes a malformed one like any other. (If your `handle` reads
    prices, send malformed ones to a dead-letter topic there. If it raised, the pool would end at the same record each
    time.)

    Parameters
    ----------
    arguments
        The command line's arguments, if None.

    Returns
    -------
    int
        The exit status: 130 after SIGINT, 143 after SIGTERM, and 1 if it couldn't start or continue.
    """
    options = _parse(arguments)
    try:
        tracker = importlib.import_module("contiguous").Contiguous
    except (ModuleNotFoundError, AttributeError) as error:
        print(f"{error}. Save your class Contiguous as contiguous.py, and start this in its folder.", file=sys.stderr)
        return 1
    end = EndSignal()
    consumer = Consumer(
        {
            **client_settings(options.bootstrap_servers, "StockPriceWorkers"),
            **member_settings(options.group, options.instance),
            "session.timeout.ms": options.session_timeout,
            "queued.min.messages": 1000,
        }
    )
    try:
        partition_count(consumer, options.topic, _CONNECT_SECONDS)
    except (ClusterUnreachable, UnknownTopic) as error:
        print(error, file=sys.stderr, flush=True)
        consumer.close()
        return 1

    journal = Journal(options.journal)
    never = threading.Event()

    def handle(record: Message) -> None:
        never.wait(options.work)
        journal.add(record)

    pool = WorkerPool(consumer, handle, tracker, workers=options.workers, commit_every=options.commit_every)
    try:
        pool.run(options.topic, stopping=end.arrived)
    except KafkaException as error:
        print(error.args[0].str(), file=sys.stderr, flush=True)
        return 1
    finally:
        journal.close()
    return end.exit_status


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kafkacourse.stocks.workers_app", description="Notes stock prices until Ctrl-C.")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--topic", default="stock-prices")
    parser.add_argument("--group", default="workers")
    parser.add_argument("--instance", metavar="NAME", help="the same for each start, another one for each process of the group")
    parser.add_argument(
        "--session-timeout",
        type=int,
        default=45_000,
        metavar="MS",
        help="how long it may be silent before the group removes it",
    )
    parser.add_argument("--journal", default="prices.txt", metavar="FILE", help="a line for each price that was processed")
    parser.add_argument("--workers", type=int, default=4, metavar="N")
    parser.add_argument("--work", type=float, default=0.01, metavar="SECONDS", help="how long one price takes")
    parser.add_argument("--commit-every", type=float, default=1.0, metavar="SECONDS")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
