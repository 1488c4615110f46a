"""A sink that skips two records it can't write, and their dead letters."""

from __future__ import annotations

from typing import cast

from confluent_kafka import Message

from kafkalab.checks.connectors import config_of, runs, target_lines
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import quoted

__all__ = ["lab"]

SINK, TOPIC = "orders-out", "orders"
GOOD = ("order-0", "order-1", "order-3", "order-4", "order-6", "order-7")
CARD = "4000-12"
BAD = {"oops": (2, "VALUE_CONVERTER"), "42": (5, "TRANSFORMATION")}
_QUEUE, _SAYS = "errors.deadletterqueue.topic.name", "__connect.errors."
_SET_BACK = "Run its cell again after `connect.forget('orders-out')`: the sink then meets them again."

lab = Lab("09_dead_letters")

dead = lab.add_check(
    "09_dead_letters",
    "Find out what dead letters say",
    hints=(
        "All settings that you need begin with `errors.`. PUT the whole configuration again, with these added.",
        "The dead-letter topic gets three replicas unless a setting says something else. How many brokers are there?",
        "Without `errors.deadletterqueue.context.headers.enable` a dead letter says nothing about the failure.",
        "`record.headers()` is a list of pairs, and each value is bytes: decode it, and make the offset an int.",
    ),
)


@dead.requires("orders-out runs, and its file has the six good orders")
def good_ones_are_written(ctx: CheckContext) -> None:
    runs(ctx, SINK)
    written = "\n".join(target_lines(ctx, SINK))
    if missing := [order for order in GOOD if order not in written]:
        raise Unmet(f"The file of {SINK} lacks {missing[0]}. At which record did its task stop, and what lets it go on?")


@dead.requires("No order in that file shows its card", after=good_ones_are_written)
def cards_are_masked(ctx: CheckContext) -> None:
    if any(CARD in line for line in target_lines(ctx, SINK)):
        raise Unmet(f"A line of the file shows a card's number. Does {SINK} still have the transform that it was given?")


def letters(ctx: CheckContext) -> list[Message]:
    """Return the records in the sink's dead-letter topic. Raise `Unmet` if the topic doesn't exist."""
    topic = config_of(ctx, SINK).get(_QUEUE)
    if not topic:
        raise Unmet(f"{SINK} tolerates errors and has no dead-letter topic. Where are the two records now? {_SET_BACK}")
    existing(ctx, topic)
    return ctx.records(topic)


@dead.requires("Its dead-letter topic holds both records that it couldn't write", after=good_ones_are_written)
def bad_ones_are_kept(ctx: CheckContext) -> None:
    kept = {text_of(letter) for letter in letters(ctx)}
    if missing := [bad for bad in BAD if bad not in kept]:
        raise Unmet(
            f"The dead-letter topic lacks {quoted(missing[0])}. Had the sink passed it before it had such a topic? {_SET_BACK}"
        )
    if good := [value for value in kept if value not in BAD]:
        raise Unmet(f"The dead-letter topic holds {quoted(good[0])}, which is an order. Why couldn't the sink write that one?")


def told(letter: Message) -> dict[str, str]:
    """Return the context headers of a dead letter."""
    headers = cast("list[tuple[str, bytes | None]]", letter.headers() or [])
    return {name.removeprefix(_SAYS): (value or b"").decode() for name, value in headers if name.startswith(_SAYS)}


@dead.requires("Their headers say where they came from", after=bad_ones_are_kept)
def headers_tell(ctx: CheckContext) -> None:
    telling = {text_of(letter) for letter in letters(ctx) if told(letter).get("topic") == TOPIC}
    if missing := [bad for bad in BAD if bad not in telling]:
        raise Unmet(f"No dead letter of {quoted(missing[0])} says where it came from. Which setting adds that? {_SET_BACK}")


def _plain(value: int | str | bytes) -> str:
    """Return an offset or a stage as text. In a header both are bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@dead.requires("You know where each of them was, and at which stage it failed", after=headers_tell)
def causes_are_known(ctx: CheckContext) -> None:
    given = ctx.answer("causes", dict[int | str | bytes, str | bytes], "offset in orders → stage")
    causes = {_plain(offset): _plain(stage) for offset, stage in given.items()}
    right = {str(offset): stage for offset, stage in BAD.values()}
    if wrong := sorted(causes.keys() - right.keys()):
        raise Unmet(f"`causes` has the offset {wrong[0]}. That isn't where a letter was in orders: which header says that?")
    for offset, stage in right.items():
        if offset not in causes:
            raise Unmet(f"`causes` has {sorted(causes)}, and one record that failed is missing. How many letters are there?")
        if causes[offset] != stage:
            raise Unmet(
                f"`causes` says {causes[offset]!r} for offset {offset}. What does the header `{_SAYS}stage` of that letter say?"
            )
