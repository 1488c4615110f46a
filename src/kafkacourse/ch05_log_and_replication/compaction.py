"""Topics that keep the last value of each key: their settings, what is left after compaction, and tombstones."""

from __future__ import annotations

from confluent_kafka import Message

from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import existing, filled, has_shape
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC = "changes"
_CHANGES = ("K1V5", "K5V2", "K2V7", "K7V1", "K8V4", "K4V6", "K1V1", "K1V2", "K1V9", "K9V6", "K8V22", "K2V25")
HISTORY = tuple((change[:2], change[2:]) for change in _CHANGES)
LAST = {key: offset for offset, (key, _) in enumerate(HISTORY)}
DELETED = "K5"

lab = Lab("05_compaction")


def only_compacts(ctx: CheckContext, topic: str) -> None:
    """Raise `Unmet` unless the cleaner may remove replaced records, and nothing may remove others."""
    existing(ctx, topic)
    if (policy := ctx.topic_config(topic)["cleanup.policy"]) != "compact":
        raise Unmet(
            f"The cleanup.policy of {topic} is {policy}. Which one keeps the last value of each key, however old it is?"
        )


# -- settings ---------------------------------------------------------------------------------------------------------

creation = lab.add_check(
    "05_compact_create",
    "Create a compacted topic",
    hints=(
        "`config` is a dictionary: a setting's name → its value, both as text.",
        "`cleanup.policy` is the setting. Chapter 05, section 5 says which values it can have.",
    ),
)
is_shaped = creation.requires("customers has 1 partition with 1 replica")(has_shape("customers", 1, 1))


@creation.requires("It keeps the last record of each customer, and forgets none", after=is_shaped)
def customers_are_compacted(ctx: CheckContext) -> None:
    only_compacts(ctx, "customers")


# -- what is left -----------------------------------------------------------------------------------------------------

compaction = lab.add_check(
    "05_compaction",
    "Compact a history",
    hints=(
        "The cleaner leaves the active segment alone. Which record closes it? It must be in a batch of its own.",
        "With segment.ms=1000, a segment is closed when a record comes that is a second younger than the segment's first one.",
        "produce() takes timestamp=, in milliseconds since 1970. The last record may come from the near future.",
        "The cleaner runs in the background. wait_until(condition, seconds, what) waits for what you expect.",
    ),
)


@compaction.requires(f"{TOPIC} is compacted")
def is_compacted(ctx: CheckContext) -> None:
    only_compacts(ctx, TOPIC)


@compaction.requires("It was given the history, in order, each change once", after=is_compacted)
def history_is_written(ctx: CheckContext) -> None:
    records = filled(ctx, TOPIC)
    if (end := ctx.end_offsets(TOPIC)[0]) < len(HISTORY):
        raise Unmet(f"{TOPIC} was given {counted(end, 'record')} so far. The history has {len(HISTORY)}.")
    for record in records:
        at = _offset(record)
        if at < len(HISTORY) and (found := (key_of(record), text_of(record))) != HISTORY[at]:
            raise Unmet(
                f"Offset {at} holds {' → '.join(found)}, but the history has another change in that place. In which order did "
                "you send the changes? Run the cell that sends them again: it begins with an empty topic."
            )


@compaction.requires("Of each key only the last value is left, at the offset it always had", after=history_is_written)
def last_values_are_left(ctx: CheckContext) -> None:
    left = {_offset(record) for record in filled(ctx, TOPIC)}
    if lost := [offset for offset in sorted(LAST.values()) if offset not in left]:
        raise Unmet(
            f"Offset {lost[0]} is gone, too, and with it the history's last value of {HISTORY[lost[0]][0]}. Which later record "
            "of yours has the same key? Run the cell that sends the history again: it begins with an empty topic."
        )
    if outdated := [offset for offset, (key, _) in enumerate(HISTORY) if offset in left and offset != LAST[key]]:
        raise Unmet(
            f"Offset {outdated[0]} is still there, though a later record has the same key, {HISTORY[outdated[0]][0]}. Which "
            "segments doesn't the cleaner touch, and is that record, or the later one, in such a segment?"
        )


# -- tombstones -------------------------------------------------------------------------------------------------------

deletion = lab.add_check(
    "05_tombstone",
    "Delete a key",
    hints=(
        "A tombstone is a record with the key and without a value. produce() sends one if you leave the value out.",
        "The cleaner keeps a tombstone for delete.retention.ms, a topic setting: a day, unless you set it.",
        "A tombstone goes when the cleaner comes by *after* that time, and it comes only if there's something new to clean.",
    ),
)


@deletion.requires(f"No value of {DELETED} is left")
def value_is_gone(ctx: CheckContext) -> None:
    only_compacts(ctx, TOPIC)
    for record in filled(ctx, TOPIC):
        if key_of(record) == DELETED and record.value() is not None:
            what = "an empty value, which is a value, too" if record.value() == b"" else f"the value {text_of(record)}"
            raise Unmet(f"{DELETED} has {what}, at offset {_offset(record)}. What tells the cleaner that a key is to go?")


@deletion.requires("Its tombstone is gone, too", after=value_is_gone)
def tombstone_is_gone(ctx: CheckContext) -> None:
    if ctx.end_offsets(TOPIC)[0] <= len(HISTORY):
        raise Unmet(f"{TOPIC} was given no record after the history. Which record deletes a key?")
    if tombstones := [_offset(record) for record in ctx.records(TOPIC) if key_of(record) == DELETED]:
        kept = ctx.topic_config(TOPIC)["delete.retention.ms"]
        raise Unmet(
            f"The tombstone is still there, at offset {tombstones[-1]}. delete.retention.ms is {kept} now. What was it when "
            "the cleaner first met the tombstone, has that time passed, and had the cleaner anything to clean since?"
        )


@deletion.requires("Every other key has the value and the offset that it had", after=value_is_gone)
def others_are_untouched(ctx: CheckContext) -> None:
    left = {_offset(record): (key_of(record), text_of(record)) for record in ctx.records(TOPIC)}
    for key, offset in LAST.items():
        if key != DELETED and left.get(offset) != HISTORY[offset]:
            raise Unmet(
                f"The history's last value of {key} isn't at offset {offset} any more. The lab deletes {DELETED} only. "
                "Run the cells again from the one that sends the history on: it begins with an empty topic."
            )


def _offset(record: Message) -> int:
    offset = record.offset()
    assert offset is not None  # because it was read
    return offset
