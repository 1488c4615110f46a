"""A stream's state: read from its checkpoint, kept in RocksDB, and bounded by a watermark."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.wording import counted, quoted

__all__ = ["lab"]

A_MINUTE, REPEATS = 1000, 100  # events that are new, and events that come again
FIRST, MINUTES = 5, 10
PATIENCE = 120  # seconds
FORGETFUL = 5 * A_MINUTE  # rows that are enough for events of 2 minutes, and for batches of a minute

lab = Lab("11_state")

check = lab.add_check(
    "11_state",
    "Keep a stream's state small",
    hints=(
        "spark.read.format('state-metadata').load(folder) has a row for each operator. The column operatorName names it.",
        "The class is org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider. Changelogs have a setting "
        "below spark.sql.streaming.stateStore.rocksdb, too. A query reads both when it starts with a new checkpoint.",
        "withWatermark says how late an event may come. Which operator for repeats forgets ids by it?",
    ),
)


@check.requires("You know how many rows the state of the first stream has")
def rows_are_known(ctx: CheckContext) -> None:
    rows = ctx.answer("rows", int, "how many rows the state of the stream memory has")
    # The stream takes in one more minute later in the lab. Whoever reads the state after that is right, too.
    if rows not in (FIRST * A_MINUTE, (FIRST + 1) * A_MINUTE):
        raise Unmet(f"`rows` is {rows:,}. How many rows does the format statestore read from the folder of the stream memory?")


@check.requires("You know which operator the state belongs to")
def operator_is_known(ctx: CheckContext) -> None:
    operator = ctx.answer("operator", str, "the operator's name, as a text")
    if operator.strip() != "dedupe":
        raise Unmet(f"`operator` is {quoted(operator)}. What does the format state-metadata have in the column operatorName?")


def _batches(ctx: CheckContext, name: str) -> list[dict[str, Any]]:
    """Return what the stream says about its batches."""
    query = ctx.answer(name, object, f"the query of the stream {name}")
    batches = getattr(query, "recentProgress", None)
    if batches is None:
        raise Unmet(f"`{name}` should be a query, as run() returns it. It's of type {type(query).__name__}.")
    if not batches:
        raise Unmet(f"The stream {name} has reported no batch. Its checkpoint may be at the end already: take another folder.")
    return list(batches)


def _reports(ctx: CheckContext, name: str) -> list[dict[str, Any]]:
    """Return what the stream says about its state, batch by batch."""
    states = [state for batch in _batches(ctx, name) for state in batch["stateOperators"]]
    if not states:
        raise Unmet(f"The stream {name} has no operator with a state. Which operator drops repeats?")
    return states


def _is_in_rocksdb(ctx: CheckContext, name: str) -> list[dict[str, Any]]:
    states = _reports(ctx, name)
    if not any("rocksdb" in metric for metric in states[-1]["customMetrics"]):
        raise Unmet(
            f"The state of the stream {name} is in memory. Was the provider set before the stream's first batch? A checkpoint "
            "keeps the provider that it began with."
        )
    return states


@check.requires("The stream rocksdb has its state in RocksDB")
def rocksdb_is_used(ctx: CheckContext) -> None:
    rows = _is_in_rocksdb(ctx, "rocksdb")[-1]["numRowsTotal"]
    if rows < FIRST * A_MINUTE:
        raise Unmet(
            f"The state of the stream rocksdb has {rows:,} rows. It should have one for each of {FIRST * A_MINUTE:,} ids."
        )


@check.requires("Its batches write changelogs to the checkpoint", after=rocksdb_is_used)
def changelogs_are_written(ctx: CheckContext) -> None:
    folder = Path(ctx.answer("checkpoints", str, "the folder of the checkpoints"), "rocksdb")
    if not folder.is_dir():
        raise Unmet("There is no checkpoint with the name rocksdb. The second argument of run() names it.")
    if not any(folder.glob("state/*/*/*.changelog")):
        raise Unmet(
            "The checkpoint of the stream rocksdb has no changelog, so each batch writes all that changed in RocksDB's files. "
            "Which setting switches changelogs on? It counts for a new checkpoint."
        )


@check.requires("The stream bounded has its state in RocksDB, and forgets")
def state_is_bounded(ctx: CheckContext) -> None:
    states = _is_in_rocksdb(ctx, "bounded")
    if (rows := states[-1]["numRowsTotal"]) > FORGETFUL:
        raise Unmet(
            f"The state of the stream bounded has {rows:,} rows after {MINUTES} minutes of events. What tells it that an id "
            "won't come again?"
        )
    if (patience := _patience(_batches(ctx, "bounded"))) < PATIENCE:
        raise Unmet(
            f"The watermark of the stream bounded is {patience:.0f} s behind the latest event. A repeat may be 2 minutes "
            "older, and then its id must still be there."
        )


def _patience(batches: list[dict[str, Any]]) -> float:
    """Return by how many seconds the last watermark is behind the latest event before it."""
    *earlier, last = [batch["eventTime"] for batch in batches]
    latest = max(datetime.fromisoformat(times["max"]) for times in earlier if "max" in times)
    return (latest - datetime.fromisoformat(last["watermark"])).total_seconds()


@check.requires("It drops each repeat, and nothing else", after=state_is_bounded)
def only_repeats_are_dropped(ctx: CheckContext) -> None:
    states = _reports(ctx, "bounded")
    if late := sum(state["numRowsDroppedByWatermark"] for state in states):
        raise Unmet(f"The stream bounded dropped {counted(late, 'event')} as too late. How late may an event come?")
    repeats = sum(state["customMetrics"].get("numDroppedDuplicateRows", 0) for state in states)
    if repeats < MINUTES * REPEATS:
        raise Unmet(
            f"The stream bounded dropped {counted(repeats, 'repeat')}. {MINUTES} minutes have {MINUTES * REPEATS}. Were all "
            "minutes sent before it ran, and by which columns does it compare events?"
        )
    if repeats > MINUTES * REPEATS:
        raise Unmet(
            f"The stream bounded dropped {counted(repeats, 'repeat')}. Run each cell with send() once, from section 1 on."
        )
