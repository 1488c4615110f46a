"""The only broker killed while two producers send, and restarted."""

from __future__ import annotations

from confluent_kafka import Message

from kafkalab.checks.brokers import nodes
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.timing import CLOCK, created
from kafkalab.checks.topics import has_shape
from kafkalab.checks.wording import START_OVER
from kafkalab.cluster.view import Fault

__all__ = ["lab"]

TOPIC = "atu"
BEFORE = ["one", "two", "three"]

lab = Lab("01_one_broker")

check = lab.add_check(
    "01_one_broker",
    "Lose the only broker",
    hints=(
        "The steps in order: send, kill, give a record to each of the two producers, wait for one to give up, restart, wait "
        "for the other, send.",
        "produce() returns at once. report() is told what became of the record while you call flush() or poll().",
        "impatient.flush() takes as long as its delivery timeout: call it before the restart. patient.flush() returns when "
        "its record is delivered: call it after the restart.",
        "The error's name is what error.name() returns, with its leading underscore.",
    ),
)


def outage(ctx: CheckContext) -> tuple[Fault, Fault]:
    """Return the last kill of the broker, and the restart after it."""
    faults: list[Fault] = ctx.cluster.faults
    killed = [i for i, f in enumerate(faults) if f.verb == "kill"]
    if not killed:
        for verb, what in (("stop", "shut down: it could say goodbye"), ("pause", "paused: its process was still there")):
            if any(f.verb == verb for f in faults):
                raise Unmet(f"The broker was {what}. Which verb of the cluster sends SIGKILL?")
        raise Unmet("The broker wasn't killed yet.")
    back = [f for f in faults[killed[-1] :] if f.verb == "restart"]
    if not back:
        raise Unmet("The broker was killed and hasn't come back. No broker answers until you restart it.")
    return faults[killed[-1]], back[0]


def found(ctx: CheckContext, value: str) -> list[Message]:
    """Return the records with this value."""
    return [m for m in ctx.records(TOPIC) if text_of(m) == value]


@check.requires("Broker 0 was killed and is up again")
def outage_is_over(ctx: CheckContext) -> None:
    outage(ctx)
    if (state := nodes(ctx)[0].state) != "up":
        raise Unmet(f"Broker 0 came back, but now it is {state}.")


is_shaped = check.requires(f"{TOPIC} has 1 partition with 1 replica", after=outage_is_over)(has_shape(TOPIC, 1, 1))


@check.requires("You sent one, two and three before, and they are still there in order", after=is_shaped)
def sent_before(ctx: CheckContext) -> None:
    records = [m for m in ctx.records(TOPIC) if text_of(m) in BEFORE]
    values = [text_of(m) for m in records]
    if missing := [value for value in BEFORE if value not in values]:
        raise Unmet(f"{missing[0]!r} isn't in {TOPIC}.")
    if values != BEFORE:
        raise Unmet(f"{TOPIC} holds {', '.join(values)}, not one, two, three, each once. {START_OVER}")
    killed, _ = outage(ctx)
    if late := [m for m in records if created(m) > killed.at + CLOCK]:
        raise Unmet(f"You sent {text_of(late[0])!r} after you had killed the broker. {START_OVER}")


@check.requires("The producer gave lost up, and you know with which error", after=is_shaped)
def lost_was_given_up(ctx: CheckContext) -> None:
    if found(ctx, "lost"):
        raise Unmet(f"'lost' is in {TOPIC}: a broker was there before the producer gave up. {START_OVER}")
    error = ctx.error_name("error", "the name of the error in the delivery report of 'lost'")
    if error != "_MSG_TIMED_OUT":
        raise Unmet(f"The error isn't {error!r}. What does name() of the error in the delivery report return?")


@check.requires("You sent waiting while the broker was down, and it arrived", after=is_shaped)
def waiting_arrived(ctx: CheckContext) -> None:
    killed, back = outage(ctx)
    records = found(ctx, "waiting")
    if not records:
        raise Unmet(f"'waiting' isn't in {TOPIC}. Did its producer give up, or did nobody wait for the delivery?")
    if created(records[0]) < killed.at - CLOCK:
        raise Unmet(f"You sent 'waiting' while the broker was still up. {START_OVER}")
    if created(records[0]) > back.at + CLOCK:
        raise Unmet(
            "You gave 'waiting' to the producer after the broker was back. It should wait in the producer during the outage. "
            f"{START_OVER}"
        )


@check.requires("You sent four after the restart", after=is_shaped)
def four_was_sent_afterwards(ctx: CheckContext) -> None:
    _, back = outage(ctx)
    records = found(ctx, "four")
    if not records:
        raise Unmet(f"'four' isn't in {TOPIC}.")
    if created(records[-1]) < back.at - CLOCK:
        raise Unmet(f"You sent 'four' before the broker was back. {START_OVER}")
