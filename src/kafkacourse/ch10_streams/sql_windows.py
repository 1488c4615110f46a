"""Windows with late records, and a join of two streams, in SQL and as a topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kafkacourse.ch10_streams.windows import ALARMS, RIGHT, SIZE, counts_for
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import FROM_SECTION_1, key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, CALLS_TOPIC = "alarms", "calls"
AT_ONCE, COUNTS_IN_SQL, COUNTS_IN_STREAMS = "counts_at_once", "counts_in_sql", "counts_in_streams"
ANSWERED_IN_SQL, ANSWERED_IN_STREAMS = "answered_in_sql", "answered_in_streams"
CALLS = ((6, "11"), (15, "21"), (22, "11"), (40, "28"))
WITHIN = 10
_WRITTEN = "Has the query or the application that writes it run, and what did it read?"

lab = Lab("10_sql_windows")

check = lab.add_check(
    "10_sql_windows",
    "Count by window and join two streams, in SQL and with a topology",
    hints=(
        "In Spark SQL, GROUP BY window(time, '10 seconds'), driver. The group has a column window.start; unix_timestamp makes "
        "seconds of it.",
        "A query with the checkpoint of an earlier one goes on where that was. write has a checkpoint for each topic.",
        "Two streams are joined ON the same driver AND a condition on both times, such as BETWEEN with an INTERVAL.",
        "In the topology, join takes the other stream, a joiner of both values, and JoinWindows. Its before and after say "
        "how far the other record may be away, in either direction.",
    ),
)


EVERYTHING = counts_for(grace=None)
ANSWERED = {
    (driver, f"{second}-{call}")
    for second, driver in ALARMS
    for call, called in CALLS
    if driver == called and second <= call <= second + WITHIN
}


@check.requires("Alarms and calls were sent, once")
def all_were_sent(ctx: CheckContext) -> None:
    for topic, wanted in ((SOURCE, len(ALARMS)), (CALLS_TOPIC, len(CALLS))):
        existing(ctx, topic)
        if (found := ctx.end_offsets(topic)[0]) != wanted:
            raise Unmet(f"{topic} was given {counted(found, 'record')}, not {wanted}. Run its cell once. {FROM_SECTION_1}")


def _counts(ctx: CheckContext, topic: str) -> dict[str, str]:
    """The last count of each window, where all windows are there."""
    found = {key_of(record): text_of(record) for record in filled(ctx, topic, _WRITTEN)}
    if others := [key for key in found if key not in EVERYTHING]:
        raise Unmet(
            f"{topic} has a record with the key {quoted(others[0])}. A key is driver@start, with the start in seconds, and "
            f"windows are {SIZE} s long, one after the other."
        )
    if missing := [key for key in EVERYTHING if key not in found]:
        raise Unmet(
            f"{topic} has no count for {missing[0]} so far. Is each change of a count written, and was everything read?"
        )
    return found


def _has_counts(topic: str, right: Counter[str], late: str) -> Callable[[CheckContext], None]:
    """Asks for these counts; `late` helps where the late alarm makes the difference."""

    def probe(ctx: CheckContext) -> None:
        for key, value in _counts(ctx, topic).items():
            if value == str(right[key]):
                continue
            if value == str((EVERYTHING if right is RIGHT else RIGHT)[key]):
                raise Unmet(f"{topic} has {value} for {key}. {late}")
            raise Unmet(f"{topic} has {quoted(value)} for {key}. Count the alarms of that driver in that window by hand.")

    return probe


check.requires(f"{AT_ONCE} has the counts of one micro-batch with all alarms", after=all_were_sent)(
    _has_counts(AT_ONCE, EVERYTHING, "One alarm was dropped. Had all nine been sent when this query began?")
)
check.requires(f"{COUNTS_IN_SQL} has the counts without the alarm that was too late", after=all_were_sent)(
    _has_counts(
        COUNTS_IN_SQL, RIGHT, "The alarm of second 9 is in it. Which alarms had the query processed when that one came?"
    )
)
check.requires(f"{COUNTS_IN_STREAMS} has the same counts", after=all_were_sent)(
    _has_counts(COUNTS_IN_STREAMS, RIGHT, "The alarm of second 9 is in it. How long does your window wait after its end?")
)


def _has_answers(topic: str) -> Callable[[CheckContext], None]:
    def probe(ctx: CheckContext) -> None:
        found = Counter((key_of(record), text_of(record)) for record in filled(ctx, topic, _WRITTEN))
        for driver, pair in found:
            if (driver, pair) not in ANSWERED:
                raise Unmet(
                    f"{topic} has {quoted(pair)} for driver {quoted(driver)}. A row has the driver as its key, and "
                    f"alarm-call in seconds. The call is of the same driver, and comes 0 to {WITHIN} s after the alarm."
                )
        if twice := [pair for pair, times in found.items() if times > 1]:
            raise Unmet(f"{topic} has {quoted(twice[0][1])} of driver {twice[0][0]} more than once. {FROM_SECTION_1}")
        if missing := sorted(ANSWERED - set(found)):
            raise Unmet(
                f"{topic} lacks {len(missing)} of {len(ANSWERED)} pairs, for example an alarm of driver {missing[0][0]}. "
                "Was everything read, and which alarms can your condition find for a call?"
            )

    return probe


check.requires(f"{ANSWERED_IN_SQL} has each alarm with the calls that answered it", after=all_were_sent)(
    _has_answers(ANSWERED_IN_SQL)
)
check.requires(f"{ANSWERED_IN_STREAMS} has the same pairs", after=all_were_sent)(_has_answers(ANSWERED_IN_STREAMS))
