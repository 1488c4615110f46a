"""Dead letters that are sent back: repaired ones become events, hopeless ones stop, and the ledger's sum holds."""

from __future__ import annotations

from collections import Counter
from typing import cast

from confluent_kafka import Message

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import json_object, last_values
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

SOURCE, TABLE, LETTERS = "truck_position", "events", "dead_letters"
EVENTS, UNKNOWN, CUT = 160, 3, 5
RECORDS = EVENTS + UNKNOWN + CUT
DEAD = {f"trace-unknown-{number}" for number in range(UNKNOWN)} | {f"trace-cut-{number}" for number in range(CUT)}
MOST = 3  # times that a record is sent back
CAUSES = ((100, "is good"), (140, "was written by schema 2"), (EVENTS, "came from the truck with the fast clock"))

lab = Lab("11_replay")

check = lab.add_check(
    "11_replay",
    "Replay the dead letters",
    hints=(
        "headers() of a letter is a list of names and values. Which of them did the record have when it came?",
        "A group's committed offset survives the notebook, and needs no member of the group: commit(offsets=…), committed(…). "
        "Commit when the records are delivered.",
        "Read dead.replays from the letter (a record that was never sent back hasn't got it), and send it on as one more.",
        "A letter of the fast clock has the right schema. decode its value, take an hour off the timestamp, and encode it.",
    ),
)


def _source(ctx: CheckContext) -> list[Message]:
    records = filled(ctx, SOURCE)
    if len(records) < RECORDS:
        raise Unmet(f"{SOURCE} has {counted(len(records), 'record')}. Trucks send {RECORDS}. {RUN_AGAIN}")
    return records


def _headers(record: Message) -> dict[str, bytes]:
    headers = cast(list[tuple[str, bytes | None]], record.headers() or [])
    return {name: value for name, value in headers if value is not None}


@check.requires("Records were sent back with their own headers, and with the number of replays")
def headers_are_right(ctx: CheckContext) -> None:
    again = _source(ctx)[RECORDS:]
    if not again:
        raise Unmet(f"{SOURCE} has the {RECORDS} records of the trucks, and none that was sent back.")
    for record in again:
        headers, where = _headers(record), f"The record at offset {record.offset()} of {SOURCE}"
        if "trace" not in headers or record.key() != b"truck":
            raise Unmet(f"{where} lacks its own key or its own header `trace`. What did the letter have of the record?")
        if strange := [name for name in headers if name.startswith("dead.") and name != "dead.replays"]:
            raise Unmet(f"{where} has the letter's header {quoted(strange[0])}. It belongs to the letter, not to the record.")
        if not headers.get("dead.replays", b"").isdigit():
            raise Unmet(f"{where} was sent back, and has no number in the header dead.replays.")
    times: Counter[bytes] = Counter()
    for record in again:
        headers = _headers(record)
        trace, says = headers["trace"], int(headers["dead.replays"])
        times[trace] += 1
        if says != times[trace]:
            raise Unmet(
                f"The record at offset {record.offset()} of {SOURCE} was sent back {counted(times[trace], 'time')}, and its "
                f"header dead.replays says {says}. Was one letter sent twice?"
            )


@check.requires("Kafka knows where the replay goes on")
def position_is_kept(ctx: CheckContext) -> None:
    letters, view = len(filled(ctx, LETTERS)), ctx.view()
    committed = any(group.lag.get((LETTERS, 0), letters) < letters for group in view.groups.values())
    others = [topic for topic in view.topics if not topic.startswith("_") and topic not in (SOURCE, TABLE, LETTERS)]
    if not committed and not any(map(ctx.record_count, others)):
        raise Unmet(
            f"No group has committed an offset in {LETTERS} beyond its beginning. A variable is gone with the kernel: where "
            "would another one go on?"
        )


@check.requires("The table has each event of the ledger")
def events_are_there(ctx: CheckContext) -> None:
    _source(ctx)
    names = last_values(filled(ctx, TABLE)).keys()
    for number in range(EVENTS):
        if f"event-{number}" not in names:
            cause = next(what for end, what in CAUSES if number < end)
            raise Unmet(
                f"{TABLE} lacks event-{number}, which {cause}. Is its letter still in {LETTERS}, and with which reason?"
            )


@check.requires("Each has the time when it happened", after=events_are_there)
def times_are_right(ctx: CheckContext) -> None:
    ledger = ctx.answer("ledger", dict[str, int], "id → milliseconds, as drive() notes them")
    for name, value in last_values(filled(ctx, TABLE)).items():
        time = (json_object(value) or {}).get("time")
        if time != ledger.get(name):
            raise Unmet(
                f"{name} has the time {time} in {TABLE}, and {ledger.get(name)} in the ledger. By how much is it wrong?"
            )


@check.requires("Records that can't be repaired were tried, and then left alone")
def hopeless_ones_stop(ctx: CheckContext) -> None:
    times = Counter(text_of(record) for record in _source(ctx)[RECORDS:])
    for number in range(UNKNOWN):
        value = f"\0\0\0\0\x63 unknown {number}"
        if not 1 < times[value] <= MOST:
            raise Unmet(
                f"A record of schema 99 was sent back {counted(times[value], 'time')}. It should be tried again, "
                f"{MOST} times at most. Which header tells how often it was?"
            )
    for number in range(CUT):
        value = f"\0\0\0\0\x01 cut off {number}"
        if not 0 < times[value] <= MOST:
            raise Unmet(
                f"A value that was cut off was sent back {counted(times[value], 'time')}. It should be tried, and {MOST} times "
                "at most."
            )


@check.requires("The ledger's sum holds", after=(events_are_there, hopeless_ones_stop))
def sum_holds(ctx: CheckContext) -> None:
    rows = ctx.answer("rows", int, "how many events the table has")
    dead = ctx.answer("dead", list[str | bytes], "the traces of the records that are still dead letters")
    if rows != EVENTS:
        raise Unmet(f"`rows` is {rows}. How many different keys does {TABLE} have?")
    traces = Counter(trace.decode() if isinstance(trace, bytes) else trace for trace in dead)
    if more := [trace for trace in traces if trace not in DEAD or traces[trace] > 1]:
        raise Unmet(
            f"{quoted(more[0])} is in `dead` {counted(traces[more[0]], 'time')}. Is that the trace of a record which never "
            "came into the table, and is it there once?"
        )
    if missing := sorted(DEAD - traces.keys()):
        raise Unmet(f"`dead` has {counted(len(traces), 'trace')}, and lacks {quoted(missing[0])}. {RECORDS} records were sent.")
