"""Fourteen senders that share a producer, and the application that three signals end."""

from __future__ import annotations

from confluent_kafka import murmur2

from kafkacourse.prices import holds_all_stocks, holds_prices_in_range
from kafkalab.checks.batches import some_batches
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import SEND_AGAIN, keeps_each_key_in_one_partition, partitions_of_keys
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC = "stock-prices"
FEWEST = 1000

lab = Lab("03_stock_senders")

check = lab.add_check(
    "03_stock_senders",
    "Fourteen senders share a producer",
    hints=(
        "A setting with dots becomes a keyword with underscores: cluster.client_config(client_id=…, enable_idempotence=True).",
        "A StockSender is a thread: start() it, and stop() waits until it has ended. It counts in .sent and .delivered.",
        "A sender that still runs may put more into the queue. So flush when none of them runs any more.",
    ),
)

all_stocks = holds_all_stocks(TOPIC)
check.requires("Prices of all fourteen stocks were sent")(all_stocks)
check.requires("Each is JSON, in its range, with the stock's name as the key", after=all_stocks)(holds_prices_in_range(TOPIC))

one_partition = keeps_each_key_in_one_partition(TOPIC)
check.requires("The prices of one stock are in one partition", after=all_stocks)(one_partition)


@check.requires("It is the partition that Java's producer chooses", after=one_partition)
def java_agrees(ctx: CheckContext) -> None:
    partitions = len(existing(ctx, TOPIC))
    for key, found in partitions_of_keys(filled(ctx, TOPIC)).items():
        if found != {murmur2(key.encode(), partitions)}:
            raise Unmet(
                f"{key} is in partition {min(found)}, where Java's producer wouldn't put it. Which setting of librdkafka names "
                "the partitioner?"
            )


@check.requires("The producer numbers its batches", after=all_stocks)
def is_idempotent(ctx: CheckContext) -> None:
    if plain := sum(batch.count for batch in some_batches(ctx, TOPIC)[TOPIC] if batch.producer_id < 0):
        raise Unmet(
            f"{counted(plain, 'record')} of {TOPIC} came in batches without a producer id. Which setting gives a producer one? "
            f"{SEND_AGAIN}"
        )


@check.requires("Everything that was sent is in the topic", after=all_stocks)
def all_arrived(ctx: CheckContext) -> None:
    records = len(filled(ctx, TOPIC))
    sent = ctx.answer("sent", int, "how many prices your senders sent in all")
    if records < FEWEST:
        raise Unmet(f"{TOPIC} has {records} records. Did the senders go on until {FEWEST} were delivered?")
    if records < sent:
        raise Unmet(
            f"The senders sent {sent} prices, and {TOPIC} has {records}. What were the last ones waiting for when you stopped?"
        )
    if records > sent:
        raise Unmet(f"{TOPIC} has {records} prices, and your senders count {sent}. Did others send, too? {SEND_AGAIN}")


shutdown = lab.add_check(
    "03_shutdown",
    "Ended by a signal",
    hints=(
        "app.send_signal(signal.SIGINT) sends a signal. app.communicate() reads what is printed until the end, and waits for "
        "it.",
        "The last line reads '1234 sent, 1234 delivered, 0 still waiting'. re.search(r'(\\d+) sent', printed) finds the "
        "number.",
    ),
)

STATUS = {"SIGINT": (130,), "SIGTERM": (143,), "SIGKILL": (-9, 137)}  # for a killed process, a shell reports 137


def _ending(ctx: CheckContext, name: str) -> tuple[int | None, int | None]:
    """Return exit status and number of sent records, as the learner noted them for this signal."""
    endings = ctx.answer("endings", dict[str, tuple[int | None, int | None]], "{signal: (exit status, sent)}")
    if name not in endings:
        raise Unmet(f"`endings` has no {name!r}.")
    return endings[name]


def _ended_by(ctx: CheckContext, name: str) -> None:
    status, _ = _ending(ctx, name)
    if status is None:
        raise Unmet(f"`endings` has no exit status for {name}. Did you wait until the application had ended?")
    if status not in STATUS[name]:
        raise Unmet(f"`endings` has the exit status {status} for {name}. Did you send that signal, and no other?")


@shutdown.requires("After SIGINT and SIGTERM it ended cleanly")
def ended_in_order(ctx: CheckContext) -> None:
    for name in ("SIGINT", "SIGTERM"):
        _ended_by(ctx, name)


@shutdown.requires("Nothing that it had sent until then is missing", after=ended_in_order)
def nothing_is_missing(ctx: CheckContext) -> None:
    for name in ("SIGINT", "SIGTERM"):
        topic = f"ended-by-{name.lower()}"
        records = len(filled(ctx, topic))
        _, sent = _ending(ctx, name)
        if sent is None:
            raise Unmet(f"`endings` doesn't say how many records were sent until {name}. What does the application print last?")
        if sent != records:
            raise Unmet(f"`endings` has {sent} records sent until {name}, and {topic} has {records}. Which line did you read?")


@shutdown.requires("SIGKILL ended it at once")
def ended_at_once(ctx: CheckContext) -> None:
    _ended_by(ctx, "SIGKILL")


@shutdown.requires("Nobody knows how much it had sent then", after=ended_at_once)
def nobody_knows(ctx: CheckContext) -> None:
    filled(ctx, "ended-by-sigkill")
    _, sent = _ending(ctx, "SIGKILL")
    if sent is not None:
        raise Unmet(f"`endings` has {sent} records sent until SIGKILL. A killed process prints no last line: who told you?")
