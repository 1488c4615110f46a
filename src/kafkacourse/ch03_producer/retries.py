"""How three kinds of retries cope with one dead broker, and with two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from kafkalab.checks.brokers import DOWN_VERBS, all_up
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import ledger_of
from kafkalab.checks.topics import filled

__all__ = ["lab"]

IN_FLIGHT = "max.in.flight.requests.per.connection"
ASKED: Mapping[str, Mapping[str, object]] = {
    "three-tries": {IN_FLIGHT: 1, "retries": 3},
    "patient": {IN_FLIGHT: 1, "delivery.timeout.ms": 60_000},
    "idempotent": {IN_FLIGHT: 1, "delivery.timeout.ms": 60_000, "enable.idempotence": True},
}
"""By topic: the producer settings that the lab asks for."""

lab = Lab("03_retries")

check = lab.add_check(
    "03_retries",
    "One broker dead, then two",
    hints=(
        "LedgerProducer takes librdkafka's settings as keywords, with underscores for dots: max_in_flight, retries, "
        "retry_backoff_ms, delivery_timeout_ms, enable_idempotence.",
        "A number of retries is used up while the brokers are away. Leave it out, and only delivery.timeout.ms counts.",
        "list(dict.fromkeys(numbers)) keeps the first of each; itertools.pairwise gives neighbours.",
    ),
)


def _is_no_limit(name: str, value: object) -> bool:
    """Return whether a producer can't use up so many retries in 60 seconds, with pauses of a quarter of a second and more."""
    return name == "retries" and float(str(value)) >= 60 / 0.25


@check.requires("Three producers try again in three ways")
def settings_are_as_asked(ctx: CheckContext) -> None:
    for topic, asked in ASKED.items():
        given = ledger_of(ctx, topic).settings
        for name in (IN_FLIGHT, "retries", "delivery.timeout.ms", "enable.idempotence"):
            if name in asked and name not in given:
                raise Unmet(f"The producer of {topic} has no {name}. What does the text ask for?")
            if name in asked and str(given[name]).lower() != str(asked[name]).lower():
                raise Unmet(f"The producer of {topic} has {name}={given[name]!r}. What does the text ask for?")
            if name not in asked and given.get(name) and not _is_no_limit(name, given[name]):
                raise Unmet(f"The producer of {topic} has {name}, too. Then you can't tell which setting made the difference.")


@check.requires("Two brokers were down at the same time, and all are back")
def two_were_down(ctx: CheckContext) -> None:
    down: set[int] = set()
    most = 0
    for fault in ctx.cluster.faults:
        if fault.verb in DOWN_VERBS:
            down.add(fault.broker)
        elif fault.verb == "restart":
            down.discard(fault.broker)
        most = max(most, len(down))
    if most < 2:
        raise Unmet(f"At most {('no broker', 'one broker')[most]} was down at a time. When does the second one have to die?")
    all_up(ctx)


def _numbers(ctx: CheckContext, topic: str) -> dict[bytes | None, list[int]]:
    """Return the numbers of a topic's records by key, in order of offset."""
    found: dict[bytes | None, list[int]] = defaultdict(list)
    for message in filled(ctx, topic):
        found[message.key()].append(int(text_of(message).rpartition(" ")[2]))
    return found


def _judge(found: Mapping[bytes | None, Sequence[int]], sent: int) -> tuple[int, int, int]:
    """Count missing records, duplicates, and records whose first copy comes after a later one of the same key."""
    there = sum(len(set(numbers)) for numbers in found.values())
    written = sum(map(len, found.values()))
    firsts = [list(dict.fromkeys(numbers)) for numbers in found.values()]
    return sent - there, written - there, sum(a > b for first in firsts for a, b in pairwise(first))


def _became_of(ctx: CheckContext, topic: str) -> tuple[int, int, int]:
    """Count a producer's missing, duplicate and out-of-order records."""
    sent = ledger_of(ctx, topic).sent
    if not sent:
        raise Unmet(f"The producer of {topic} sent nothing. Did you start it, and stop it when the brokers were back?")
    return _judge(_numbers(ctx, topic), sent)


@check.requires("Three retries were too few, and left gaps", after=(settings_are_as_asked, two_were_down))
def three_tries_left_gaps(ctx: CheckContext) -> None:
    if not ledger_of(ctx, "three-tries").failed:
        raise Unmet("The producer of three-tries gave nothing up. Did two brokers stay down long enough for three retries?")
    missing, _, _ = _became_of(ctx, "three-tries")
    if not missing:
        raise Unmet("three-tries lacks nothing. Did its producer send while two brokers were down?")


def _nothing_is_missing(ctx: CheckContext, topic: str) -> tuple[int, int, int]:
    missing, duplicates, reordered = _became_of(ctx, topic)
    if missing:
        raise Unmet(f"{missing} of {topic} are missing. What limits its producer's tries: a time, or a number?")
    return missing, duplicates, reordered


@check.requires("patient lost nothing", after=(settings_are_as_asked, two_were_down))
def patient_has_all(ctx: CheckContext) -> None:
    _nothing_is_missing(ctx, "patient")


@check.requires(
    "idempotent lost nothing, has no duplicate, and kept the order of each key", after=(settings_are_as_asked, two_were_down)
)
def idempotent_is_perfect(ctx: CheckContext) -> None:
    _, duplicates, reordered = _nothing_is_missing(ctx, "idempotent")
    if duplicates:
        raise Unmet(f"{duplicates} of idempotent are there twice. How does the broker recognize a retry?")
    if reordered:
        raise Unmet("idempotent is out of order. How does the broker recognize a batch that comes too early?")


@check.requires("You counted what is missing, duplicated and reordered", after=(settings_are_as_asked, two_were_down))
def judged_rightly(ctx: CheckContext) -> None:
    judged = ctx.answer("judged", dict[str, tuple[int, int, int]], "{topic: (missing, duplicates, reordered)}")
    clues = {
        "missing": "Compare what was sent (ledger.sent) with what is in the topic.",
        "duplicates": "How many records are there more than different ones?",
        "reordered": "Take the first time that each number comes, key by key. How often is one smaller than the one before?",
    }
    for topic in ASKED:
        if topic not in judged:
            raise Unmet(f"`judged` has no {topic!r}.")
        right = _became_of(ctx, topic)
        for (what, clue), mine, yours in zip(clues.items(), right, judged[topic], strict=True):
            if mine != yours:
                raise Unmet(f"`judged[{topic!r}]` has {yours} {what}. That isn't what the topic shows. {clue}")
