"""Quotas: which ones the cluster knows, how fast a topic was written, and how long a client was throttled."""

from __future__ import annotations

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.quotas import CLIENT_ID, USER, require_quota
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC, OF_USERS = "limited", "by-user"
LIMIT = 200_000.0  # bytes per second
TOLERANCE = 1.3
FEWEST = 800_000  # bytes; a burst of one second is free, and shouldn't decide the result
AGAIN = "Run the cell that loads it again: it begins with an empty topic."
PERCENTAGE = 5.0
OF_USER = 400_000.0
OF_BOTH = 2_000_000.0

lab = Lab("05_quotas")

# -- bytes a second ---------------------------------------------------------------------------------------------------

rates = lab.add_check(
    "05_quotas",
    "Limit what a client may send and read",
    hints=(
        "kafka-configs.sh --alter --entity-type clients --entity-name … --add-config …=…",
        "The settings are producer_byte_rate and consumer_byte_rate, in bytes per second.",
        "json.loads(text)['brokers'] is a dictionary; each of its values has ['throttle']['max'], in milliseconds.",
    ),
)


def written_at(ctx: CheckContext, topic: str) -> float:
    """Return how fast a topic was written, in bytes per second by the broker's timestamps. Raise `Unmet` if they can't tell."""
    records = filled(ctx, topic)
    if records[0].timestamp()[0] != TIMESTAMP_LOG_APPEND_TIME:
        raise Unmet(f"The records of {topic} have their producer's timestamps, not the broker's. {AGAIN}")
    size = sum(len(record.value() or b"") for record in records)
    if size < FEWEST:
        raise Unmet(f"{topic} holds {counted(size, 'byte')}. Load a megabyte, so that the first second doesn't decide. {AGAIN}")
    times = [record.timestamp()[1] for record in records]
    return size / max(0.001, (max(times) - min(times)) / 1000)


def require_slow(ctx: CheckContext, topic: str, limit: float, question: str) -> None:
    """Raise `Unmet`, with a question about the reason, if a topic was written faster than a quota allows."""
    rate = written_at(ctx, topic)
    if rate > limit * TOLERANCE:
        raise Unmet(f"By the broker's timestamps, {topic} was written at {rate / 1000:.0f} kB/s. {question} {AGAIN}")


def require_throttled(ctx: CheckContext, *clients: str) -> None:
    """Raise `Unmet` unless the answer `throttled` says that the broker held these client ids back."""
    throttled = ctx.answer("throttled", dict[str, float], "{client id: the longest throttle time in milliseconds}")
    for client in clients:
        if client not in throttled:
            raise Unmet(f"`throttled` has no {client!r}.")
        if throttled[client] <= 0:
            raise Unmet(
                f"`throttled` says that {client} was never held back. Which part of the statistics do you look at, and do you "
                "keep the largest of all values?"
            )


@rates.requires("loader may send 200 kB/s, and reader may read 200 kB/s")
def both_are_limited(ctx: CheckContext) -> None:
    require_quota(ctx, {CLIENT_ID: "loader"}, "producer_byte_rate", LIMIT)
    require_quota(ctx, {CLIENT_ID: "reader"}, "consumer_byte_rate", LIMIT)


@rates.requires(f"{TOPIC} was written no faster than that", after=both_are_limited)
def log_grew_slowly(ctx: CheckContext) -> None:
    require_slow(ctx, TOPIC, LIMIT, "Which client id did its producer have, and was the quota there before?")


@rates.requires("reader was no faster, either", after=both_are_limited)
def reader_was_slow(ctx: CheckContext) -> None:
    measured = ctx.answer("rates", dict[str, float], "{client id: bytes per second}")
    for client in ("loader", "reader"):
        if client not in measured:
            raise Unmet(f"`rates` has no {client!r}.")
        if not 0 < measured[client] <= LIMIT * TOLERANCE:
            raise Unmet(
                f"`rates` says that {client} made {measured[client] / 1000:.0f} kB/s. Did the quota have its client id?"
            )


@rates.requires("The clients' statistics say that both were held back", after=both_are_limited)
def both_were_throttled(ctx: CheckContext) -> None:
    require_throttled(ctx, "loader", "reader")


# -- requests, and users ----------------------------------------------------------------------------------------------

shares = lab.add_check(
    "05_request_quota",
    "Limit requests, and users",
    hints=(
        "request_percentage is the setting. 100 is one of the broker's threads for all of the time.",
        "--entity-type users names a user. Without security, everybody is ANONYMOUS.",
        "Compare what loader made before and now. Which limit did it come close to?",
    ),
)


@shares.requires("chatty may use 5 % of a thread")
def chatty_is_limited(ctx: CheckContext) -> None:
    require_quota(ctx, {CLIENT_ID: "chatty"}, "request_percentage", PERCENTAGE)


@shares.requires("The statistics say that chatty was held back", after=chatty_is_limited)
def chatty_was_throttled(ctx: CheckContext) -> None:
    require_throttled(ctx, "chatty")


@shares.requires("The user ANONYMOUS may send 400 kB/s")
def user_is_limited(ctx: CheckContext) -> None:
    require_quota(ctx, {USER: "ANONYMOUS"}, "producer_byte_rate", OF_USER)


@shares.requires(f"{OF_USERS} was written no faster than that", after=user_is_limited)
def users_log_grew_slowly(ctx: CheckContext) -> None:
    # Nothing tells a producer that a narrower quota holds back from one on a busy machine.
    require_slow(ctx, OF_USERS, OF_USER, "Was the user's quota there before?")


@shares.requires("You know which of its two limits counts for loader", after=user_is_limited)
def precedence_is_known(ctx: CheckContext) -> None:
    given = ctx.answer("counts", float, "the limit that counts for loader, in bytes per second")
    if given != OF_USER:
        raise Unmet(
            f"{given:g} isn't it. Kafka takes the first quota that fits, and doesn't add up or compare limits. Which one comes "
            "first?"
        )


# -- both together ----------------------------------------------------------------------------------------------------

pair = lab.add_check(
    "05_quota_pair",
    "Limit a user's client id",
    hints=(
        "kafka-configs.sh takes two entities in one command, each with its --entity-type and --entity-name.",
        "Kafka takes one quota and ignores the others. Which one describes loader best?",
    ),
)


@pair.requires("The user ANONYMOUS with the client id loader may send 2 MB/s")
def both_together_are_limited(ctx: CheckContext) -> None:
    require_quota(ctx, {USER: "ANONYMOUS", CLIENT_ID: "loader"}, "producer_byte_rate", OF_BOTH)


@pair.requires("You know which of its three limits counts for loader", after=both_together_are_limited)
def pair_comes_first(ctx: CheckContext) -> None:
    given = ctx.answer("counts", float, "the limit that counts for loader, in bytes per second")
    if given != OF_BOTH:
        raise Unmet(f"{given:g} isn't it. Three quotas fit loader now. Which of them says most about whom it limits?")
