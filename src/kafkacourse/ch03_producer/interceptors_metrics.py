"""Interceptors that number records, and a producer's metrics while a broker is down."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

from confluent_kafka import Message, Producer

from kafkalab.checks.batches import batches_on_disk, some_batches
from kafkalab.checks.brokers import DOWN_VERBS, was_down_and_came_back
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing, filled, in_sync
from kafkalab.checks.wording import counted

__all__ = ["lab"]

lab = Lab("03_interceptors_metrics")

INTERCEPTED = "intercepted"

check = lab.add_check(
    "03_interceptors",
    "Every record passes",
    hints=(
        'replace(record, headers=[*record.headers, ("number", b"…")]) makes a copy with one more header. str(7).encode() are '
        "the bytes of a number.",
        "self.sent += 1 reads, adds and writes, and another thread may come between. Put a threading.Lock() around that and "
        "around reading the new number.",
    ),
)


def _numbers(message: Message) -> list[bytes]:
    headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
    return [value or b"" for name, value in headers if name == "number"]


@check.requires("Each record in intercepted has a number")
def each_is_numbered(ctx: CheckContext) -> None:
    for message in filled(ctx, INTERCEPTED):
        numbers = _numbers(message)
        if not numbers:
            raise Unmet("There is a record without a header called number. What does your on_send return?")
        if len(numbers) > 1:
            raise Unmet(f"A record has {len(numbers)} headers called number. How often does it pass your interceptor?")
        if not numbers[0].isdigit():
            raise Unmet(f"There is a number that reads {numbers[0]!r}. Is it written in digits, as bytes?")


@check.requires("The numbers are 1, 2, 3 …, each once", after=each_is_numbered)
def each_number_is_there_once(ctx: CheckContext) -> None:
    numbers = sorted(int(_numbers(message)[0]) for message in filled(ctx, INTERCEPTED))
    if twice := next((a for a, b in pairwise(numbers) if a == b), None):
        raise Unmet(f"Two records have the number {twice}. What may happen between adding one and reading the sum?")
    if numbers != list(range(1, len(numbers) + 1)):
        span = f"from {numbers[0]} to {numbers[-1]}"
        raise Unmet(f"The numbers of {counted(len(numbers), 'record')} go {span}. Which one comes first, and how often?")


@check.requires("As many were counted on their way out and back", after=each_is_numbered)
def both_count_all(ctx: CheckContext) -> None:
    interceptor = ctx.answer("interceptor", object, "the interceptor that your records passed")
    records = len(filled(ctx, INTERCEPTED))
    for name, hook in (("sent", "on_send"), ("acknowledged", "on_acknowledgement")):
        count = getattr(interceptor, name, None)
        if count is None:
            raise Unmet(f"Your interceptor has no attribute {name}.")
        if count != records:
            there = counted(records, "record")
            raise Unmet(f"{name} is {count}, and {INTERCEPTED} has {there}. Does each call of {hook} count one?")


WATCHED = "stock-prices"
DEFAULT = "by-default"
FEWEST_FIGURES = 5
STILL_COPYING = 10  # seconds: a shutdown takes that long at most, and the broker stops copying before its end
MORE = 1000  # at least this many of the 2000 records between two lags are on the way or written

metrics = lab.add_check(
    "03_metrics",
    "What the producer counts while a broker is away",
    hints=(
        'Producer({**cluster.client_config(…), "stats_cb": reporter, "statistics.interval.ms": 250}).',
        "kafka-configs.sh --bootstrap-server … --alter --entity-type topics --entity-name stock-prices --add-config "
        "min.insync.replicas=2",
        "producer.list_topics(topic, timeout=10).topics[topic].partitions is a dictionary. Its values have .leader, .replicas "
        "and .isrs.",
        'lags.append(end_of_log("stock-prices") - end_on_disk(2, "stock-prices")), each time after what the text says to wait '
        "for.",
    ),
)


@metrics.requires("stock-prices needs two replicas in sync, whatever the default")
def topic_overrides(ctx: CheckContext) -> None:
    for topic in (DEFAULT, WATCHED):
        existing(ctx, topic)
    default, own = (ctx.topic_config(topic)["min.insync.replicas"] for topic in (DEFAULT, WATCHED))
    if default != "3":
        raise Unmet(f"min.insync.replicas of {DEFAULT} is {default}. Did you change the default instead of one topic?")
    if own != "2":
        raise Unmet(f"min.insync.replicas of {WATCHED} is {own}. Which entity type does kafka-configs.sh need for a topic?")


came_back = was_down_and_came_back(2)
metrics.requires("Broker 2 was down and came back")(came_back)


@metrics.requires("in_sync asks the producer which replicas are in sync")
def function_asks(ctx: CheckContext) -> None:
    ask = ctx.function("in_sync", "your function")
    for topic in (DEFAULT, WATCHED):
        there = {p.partition: sorted(p.isr) for p in existing(ctx, topic)}
        try:
            found = ask(Producer(ctx.cluster.client_config()), topic)
        except Exception as error:
            raise Unmet(f"in_sync(a producer, {topic!r}) raised {type(error).__name__}: {error}") from error
        if found != there:
            raise Unmet(
                f"in_sync(a producer, {topic!r}) returned {found!r}, and the ISRs are {there}. Which attribute has them?"
            )


@metrics.requires("The producer knew which replicas were in sync", after=came_back)
def producer_saw_it(ctx: CheckContext) -> None:
    what = "what in_sync(watched, 'stock-prices') returned while broker 2 was down"
    seen = ctx.answer("seen_down", dict[int, list[int]], what)
    if set(seen) != {0, 1, 2}:
        raise Unmet(f"`seen_down` has the partitions {sorted(seen)}. Which partitions does {WATCHED} have?")
    for partition, replicas in seen.items():
        if 2 in replicas:
            raise Unmet(f"In `seen_down`, broker 2 is in sync in partition {partition}. Did you wait until the producer knew?")
        if sorted(replicas) != [0, 1]:
            raise Unmet(f"In `seen_down`, partition {partition} has {replicas}. Which replicas were in sync?")


def _written_while_away(ctx: CheckContext) -> int:
    """Return how many records have timestamps from the last stop of broker 2 to its restart, or a little before."""
    faults = [fault for fault in ctx.cluster.faults if fault.broker == 2]
    away = max(fault.at for fault in faults if fault.verb in DOWN_VERBS)
    back = min((fault.at for fault in faults if fault.verb == "restart" and fault.at > away), default=float("inf"))
    times = [message.timestamp()[1] / 1000 for message in ctx.records(WATCHED)]
    return sum(away - STILL_COPYING < time < back for time in times)


@metrics.requires("The lag of broker 2 grew, and went", after=came_back)
def lag_grew_and_went(ctx: CheckContext) -> None:
    what = "three numbers: two lags while broker 2 is down, and one at the end"
    lags = ctx.answer("lags", list[int], what)
    if len(lags) != 3:
        raise Unmet(f"`lags` has {counted(len(lags), 'number')}. It should hold {what}.")
    first, second, last = lags
    if first <= 0:
        raise Unmet(f"Your first lag is {first}. Was broker 2 down, and did the senders go on?")
    if second < first + MORE:
        raise Unmet(f"Your second lag is {second}, the first {first}. Did you wait for 2000 more records in between?")
    if last != 0:
        raise Unmet(f"Your last lag is {last}. Were all ISRs complete, and had the senders stopped?")
    written = _written_while_away(ctx)
    if second > written:
        raise Unmet(
            f"Your second lag is {second}, but {WATCHED} has {counted(written, 'record')} from the time when broker 2 was "
            "away. What did you subtract from what?"
        )


metrics.requires("The ISRs of stock-prices are complete again", after=came_back)(in_sync(WATCHED))


@metrics.requires("Broker 2 has every record again", after=came_back)
def copy_is_whole(ctx: CheckContext) -> None:
    ends = ctx.given(WATCHED)
    if not ends:
        raise Unmet(f"{WATCHED} is empty. Did the senders run?")
    there = sum(batch.count for batch in batches_on_disk(ctx, 2, WATCHED)[WATCHED])
    if there != ends:
        raise Unmet(f"Broker 2 has {there} of {ends} records. Do the senders still send?")


@metrics.requires("The watched producer numbers its batches", after=came_back)
def is_idempotent(ctx: CheckContext) -> None:
    existing(ctx, WATCHED)
    plain = sum(batch.count for batch in some_batches(ctx, WATCHED)[WATCHED] if batch.producer_id < 0)
    # Only the senders' records have a key. Others come from the producers that try each topic once.
    if plain > sum(message.key() is None for message in ctx.records(WATCHED)):
        found = f"{counted(plain, 'record')} of {WATCHED} came in batches without a producer id"
        raise Unmet(f"{found}. Which setting gives a producer one? Run from the cell that makes `watched`.")


@metrics.requires("The producer reported its figures to the end", after=came_back)
def figures_were_told(ctx: CheckContext) -> None:
    history = getattr(ctx.answer("reporter", object, "your MetricsReporter"), "history", None)
    if history is None:
        raise Unmet("`reporter` should be the MetricsReporter of your producer.")
    if len(history) < FEWEST_FIGURES:
        told = counted(len(history), "time")
        raise Unmet(f"The reporter got figures {told}. Which two settings does a producer need to report its figures?")
    # Only the senders' records have a key.
    records = sum(message.key() is not None for message in ctx.records(WATCHED))
    if history[-1].records < records:
        raise Unmet(
            f"The last figures count {history[-1].records} records, and {WATCHED} has {records} from the senders. Who polls "
            "when the senders have stopped?"
        )
