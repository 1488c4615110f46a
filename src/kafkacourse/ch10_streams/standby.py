"""A store that is lost with its process: restored from its changelog, or already there on a standby."""

from __future__ import annotations

import contextlib

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import FROM_SECTION_1
from kafkalab.checks.topics import existing, holds
from kafkalab.checks.transactions import log_of, text
from kafkalab.errors import WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["lab"]

SOURCE, STORE = "odometers", "latest"
TRUCKS = 5000
ALONE, FOLLOWED = "alone", "followed"  # the applications' names
_FEW = TRUCKS // 10
_BATCHING = 10.0
"""Seconds for a producer of Kafka Streams to send what it has collected. It does so after 100 ms, if it gets a processor."""

lab = Lab("10_standby")

check = lab.add_check(
    "10_standby",
    "Lose a store, with and without a standby",
    hints=(
        "StreamsApp takes name=, that of one instance, and application_id=, which both instances share. Both need a setting of "
        "the application, such as num_standby_replicas.",
        "The owner is the instance whose store answers without stale. wait_for(report(), first, second) finds it.",
        "The standby must have read the changelog before you kill the owner. wait_for has a parameter for that, stale.",
        "After the kill, wait until the other instance has a row of one more truck. Then look at its `restored`.",
    ),
)
trucks_reported = check.requires(f"{TRUCKS:,} trucks have reported")(holds(SOURCE, TRUCKS))


@check.requires("Both applications kept their store in a changelog", after=trucks_reported)
def changelogs_are_full(ctx: CheckContext) -> None:
    for application in (ALONE, FOLLOWED):
        changelog = f"{application}-{STORE}-changelog"
        existing(ctx, changelog)
        if (found := ctx.given(changelog)) < TRUCKS:
            raise Unmet(
                f"{changelog} was given {found} records of {TRUCKS}. Had {application} read everything before the kill?"
            )


@check.requires("In both applications, the other instance took over after the kill", after=changelogs_are_full)
def others_took_over(ctx: CheckContext) -> None:
    for application in (ALONE, FOLLOWED):
        changelog = f"{application}-{STORE}-changelog"
        if len(_writers_of_reports(ctx, changelog)) < 2:
            raise Unmet(
                f"In {changelog}, the trucks that reported after the first {TRUCKS:,} all come from one producer, and each "
                "instance has its own. Did a truck report while both instances ran, did you kill the instance that had its row "
                f"once the changelog had it too, and did one more truck report then? {FROM_SECTION_1}"
            )


@check.requires("Without a standby, the other instance read the changelog from its beginning", after=others_took_over)
def everything_was_restored(ctx: CheckContext) -> None:
    restored = ctx.answer("without", int, "how many records the instance that was left read to restore its store")
    if restored < TRUCKS:
        raise Unmet(
            f"`without` is {restored}, and the changelog of {ALONE} has a record for each of {TRUCKS} trucks. Which of the two "
            "instances did you ask, did it have the store already, and had it read everything?"
        )
    if restored > (end := ctx.given(f"{ALONE}-{STORE}-changelog")):
        raise Unmet(f"`without` is {restored}, and the changelog of {ALONE} was given {end} records. What did you count?")


@check.requires("With a standby, it had next to nothing to read", after=others_took_over)
def little_was_restored(ctx: CheckContext) -> None:
    restored = ctx.answer("with_standby", int, "how many records the instance that was left read when the other one was gone")
    if not 0 <= restored < _FEW:
        raise Unmet(
            f"`with_standby` is {restored}. Did both instances have the setting for a standby, and had the standby read the "
            "changelog before you killed the other one?"
        )


def _writers_of_reports(ctx: CheckContext, changelog: str) -> set[int]:
    """Return the ids of the producers of those rows that came after the first 5,000.

    The first 5,000 say nothing about a kill: an instance that joins may get the task, and the store with it. An instance that
    has just taken over gets a few seconds to send the records that it has in its store already.
    """

    def found() -> set[int]:
        batches = [batch for batch in log_of(ctx, changelog) if not batch.control]
        return {batch.producer_id for batch in batches if any(_is_report(text(record.key)) for record in batch.records or ())}

    def settled() -> bool:
        return len(found()) >= 2 or ctx.given(changelog) >= ctx.given(SOURCE)

    with contextlib.suppress(WaitTimeout):  # an instance that was stopped sends no more
        wait_until(settled, _BATCHING, f"{changelog} to have a record for each of {SOURCE}")
    return found()


def _is_report(key: str) -> bool:
    """Return whether a key is that of a truck that reported later than the first 5,000."""
    return key.isdigit() and int(key) >= TRUCKS
