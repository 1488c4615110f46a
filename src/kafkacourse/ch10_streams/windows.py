"""Counts by window, of records of which some are late: one within the grace period, one after it."""

from __future__ import annotations

from collections import Counter

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.lives import passed_on
from kafkalab.checks.records import FROM_SECTION_1, last_values
from kafkalab.checks.topics import was_given
from kafkalab.checks.wording import quoted

__all__ = ["lab"]

SOURCE, SINK = "alarms", "alarm_counts"
SIZE, GRACE = 10, 5
ALARMS = ((3, "11"), (4, "21"), (7, "11"), (12, "21"), (8, "11"), (16, "11"), (9, "21"), (18, "11"), (31, "21"))

lab = Lab("10_windows")

check = lab.add_check(
    "10_windows",
    "Count by window, with late records",
    hints=(
        "groupByKey, windowedBy and count make the table. windowedBy takes windows, such as those of section 4.",
        "TimeWindows has a method for windows with a size and a grace period. Both are a java.time.Duration.",
        "toStream makes a stream of the table, and map makes another key and value of each record: give it a KeyValue.",
        "The key of a windowed count has two parts, key() and window(). A window has start(), in milliseconds.",
    ),
)


def _window(second: int) -> int:
    return second // SIZE * SIZE


def counts_for(grace: int | None) -> Counter[str]:
    """The right counts by ``driver@start`` for a grace period; None: no record is too late."""
    counts: Counter[str] = Counter()
    latest = 0
    for second, driver in ALARMS:
        latest = max(latest, second)
        if grace is None or latest < _window(second) + SIZE + grace:
            counts[f"{driver}@{_window(second)}"] += 1
    return counts


RIGHT = counts_for(GRACE)
_OPEN = {key for key in RIGHT if int(key.partition("@")[2]) + SIZE + GRACE > max(second for second, _ in ALARMS)}
_WITHOUT_GRACE, _WITHOUT_END = counts_for(0), counts_for(None)


@check.requires("The alarms were sent, once and in their order")
def alarms_were_sent(ctx: CheckContext) -> None:
    was_given(ctx, SOURCE, len(ALARMS), "record", f"Run its cell once. {FROM_SECTION_1}")


def _counts(ctx: CheckContext) -> dict[str, str]:
    """The last count of each window, as a table has it."""
    return last_values(passed_on(ctx, SINK))


@check.requires(f"{SINK} has each window of each driver, and no other", after=alarms_were_sent)
def windows_are_right(ctx: CheckContext) -> None:
    counts = _counts(ctx)
    if others := [key for key in counts if key not in RIGHT]:
        raise Unmet(
            f"{SINK} has a record with the key {quoted(others[0])}. A key is driver@start, with the start in seconds, and "
            f"windows are {SIZE} s long, one after the other."
        )
    if missing := [key for key in RIGHT if key not in counts and key not in _OPEN]:
        raise Unmet(
            f"{SINK} has no count for {missing[0]} so far. Does the application run, and has it read all alarms and committed?"
        )


@check.requires("A record that is late, but within the grace period, is counted", after=windows_are_right)
def late_ones_are_counted(ctx: CheckContext) -> None:
    for key, value in _counts(ctx).items():
        if value == str(_WITHOUT_GRACE[key]) != str(RIGHT[key]):
            raise Unmet(
                f"{SINK} has {value} for {key}, but one more record of that window came before it was closed. How long after "
                "its end does your window wait for records?"
            )


@check.requires("A record that comes after the grace period isn't counted", after=windows_are_right)
def too_late_ones_are_dropped(ctx: CheckContext) -> None:
    for key, value in _counts(ctx).items():
        if value == str(_WITHOUT_END[key]) != str(RIGHT[key]):
            raise Unmet(
                f"{SINK} has {value} for {key}, but one of these records came when the window was closed. What was stream time "
                "by then, and how long does your window wait?"
            )


@check.requires("All other counts are right, too", after=(late_ones_are_counted, too_late_ones_are_dropped))
def counts_are_right(ctx: CheckContext) -> None:
    for key, value in _counts(ctx).items():
        if value != str(RIGHT[key]):
            raise Unmet(f"{SINK} has {quoted(value)} for {key}. Count the alarms of that driver in that window by hand.")
