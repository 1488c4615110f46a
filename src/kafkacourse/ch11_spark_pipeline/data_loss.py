"""A table that is right again after events were removed unread, a topic was created anew, and a checkpoint was damaged."""

from __future__ import annotations

from kafkacourse.ch11_spark_pipeline import RUN_AGAIN
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.probes import parametrized
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled
from kafkalab.checks.wording import counted, quoted
from truck_pipeline import Trucks

__all__ = ["lab"]

SOURCE, TABLE = "truck_position", "events"
EVENTS = 340
LEDGER = [
    f"{report.event.correlation},{report.event.driver},{report.event.kind}"
    for report in Trucks(twice=0, malformed=0).reports(EVENTS)
    if report.event
]
REMOVED = slice(60, 80)  # by Kafka, before the stream had read them
ANEW = 100  # where the topic that was created anew begins
LAST = 320  # and what came after the checkpoint was damaged

lab = Lab("11_data_loss")

check = lab.add_check(
    "11_data_loss",
    "Notice lost data, and put the table right",
    hints=(
        "Spark's error says more than its reason: print all of it in catch_up, and you'll find the option's name.",
        "Kafka can't give back what it removed. All that was ever sent is in `ledger`, and `table()` has the ids of the rows.",
        "A stream without a checkpoint begins where startingOffsets says. Any new name is a new checkpoint.",
        "Nobody minds a row that is written twice: the last record of a key counts. So rather read too much than too little.",
    ),
)


@check.requires("The topic was created anew, and has all later events")
def topic_is_new(ctx: CheckContext) -> None:
    existing(ctx, SOURCE)
    events = set(ctx.values(SOURCE))
    if missing := sum(event not in events for event in LEDGER[ANEW:]):
        raise Unmet(
            f"{SOURCE} lacks {missing} of the {EVENTS - ANEW} events that trucks sent after it was created anew. {RUN_AGAIN}"
        )


@check.requires(f"Each record of {TABLE} is an event of the ledger, with its id as the key")
def rows_are_events(ctx: CheckContext) -> None:
    known = set(LEDGER)
    for record in filled(ctx, TABLE):
        event = text_of(record)
        if event not in known or key_of(record) != event.partition(",")[0]:
            raise Unmet(
                f"{TABLE} has a record with the key {quoted(key_of(record))} and the value {quoted(event)}. A row is written "
                f"by the stream of start(): the key is the event's id, the value the event as it was sent. {RUN_AGAIN}"
            )


@parametrized
def _has(ctx: CheckContext, events: list[str], sentence: str) -> None:
    """Ask whether the table has these events; the sentence goes on from how many it lacks."""
    rows = {text_of(record) for record in filled(ctx, TABLE)}
    if missing := sum(event not in rows for event in events):
        raise Unmet(f"{TABLE} lacks {counted(missing, 'row')} of {len(events)}: {sentence}")


check.requires("The table has the events that Kafka removed unread", after=rows_are_events)(
    _has(
        LEDGER[REMOVED],
        "of the events that were at offsets 60 to 79 when Kafka removed them. No stream can read those any more. Who still has "
        "the events?",
    )
)
check.requires("It has the events around them", after=rows_are_events)(
    _has(
        LEDGER[: REMOVED.start] + LEDGER[REMOVED.stop : ANEW],
        "of the events that Kafka didn't remove. Did the stream go on after it had failed, and with which option?",
    )
)
check.requires("It has the new topic's events from its beginning", after=(topic_is_new, rows_are_events))(
    _has(
        LEDGER[ANEW:LAST],
        "of the first events of the topic that was created anew. At which offset did the stream begin there, and who told it?",
    )
)
check.requires("It has what came after the checkpoint was damaged", after=(topic_is_new, rows_are_events))(
    _has(
        LEDGER[LAST:],
        "of the last events. Which of your checkpoints is still good, and where does a stream begin that has none?",
    )
)
