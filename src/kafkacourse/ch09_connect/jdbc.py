"""Two copies of a table, one by polling and one by change data capture, written by a sink whose worker died."""

from __future__ import annotations

from collections import Counter

from kafkacourse.drivers import drivers_in, keyed_by_ids
from kafkalab.checks.connectors import SENT, answer_of, config_of, runs
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import filled

__all__ = ["lab"]

SOURCE, SINK = "driver-poll", "driver-copies"
TABLE, POLLED, CAPTURED = "driver", "polled_driver", "captured_driver"

lab = Lab("09_jdbc")

jdbc = lab.add_check(
    "09_jdbc",
    "Keep copies of a table",
    hints=(
        "The connector lists its settings in the cell above. Its topic's name is made of the prefix and the table's name.",
        "`transforms` names two links. ValueToKey takes a list of `fields`, and ExtractField$Key takes one `field`.",
        "A sink's `topics` may be several, separated by commas. Which mode takes a record whose row is there already? And does "
        "the sink's key converter understand what the sources' key converters wrote?",
        "To begin afresh: stop the connector, DELETE its offsets, delete what it wrote, PUT the new settings, resume. "
        "`begin_afresh` in both cells does that, so correct the settings and run the cell again.",
    ),
)


@jdbc.requires("driver-poll runs, and each record of polled_driver has the driver's id as its key")
def rows_have_keys(ctx: CheckContext) -> None:
    runs(ctx, SOURCE)
    if any(record.key() is None for record in filled(ctx, POLLED, SENT)):
        raise Unmet(f"A record of {POLLED} has no key. Which transform makes one of a field of the value?")
    keyed_by_ids(ctx, POLLED)


@jdbc.requires("driver-copies runs")
def sink_runs(ctx: CheckContext) -> None:
    config_of(ctx, SINK)
    for task in answer_of(ctx, f"/connectors/{SINK}/status")["tasks"]:
        if "duplicate key" in task.get("trace", ""):
            raise Unmet(
                f"A task of {SINK} has failed: the table has a row of that key already. What is the sink to do with a record "
                "whose row is there?"
            )
    runs(ctx, SINK)


@jdbc.requires("Both copies have each driver, as the table has it", after=sink_runs)
def copies_have_all(ctx: CheckContext) -> None:
    drivers = drivers_in(ctx, TABLE)
    for copy in (POLLED, CAPTURED):
        found = drivers_in(ctx, copy)
        for number, row in drivers.items():
            if number not in found:
                raise Unmet(
                    f"Driver {number} isn't in the table {copy}. Does {SINK} read the topic {copy}, or is it on its way?"
                )
            if found[number] != row:
                raise Unmet(f"Driver {number} is {found[number]} in the table {copy}, and {row} in {TABLE}. Is it on its way?")


def ghosts_in(ctx: CheckContext, copy: str) -> set[int]:
    """Drivers of a copy that the table lacks."""
    return drivers_in(ctx, copy).keys() - drivers_in(ctx, TABLE).keys()


@jdbc.requires("captured_driver has nobody who was deleted", after=copies_have_all)
def deletes_arrive(ctx: CheckContext) -> None:
    if not ghosts_in(ctx, POLLED):
        raise Unmet(f"Nobody was deleted from {TABLE} since {SOURCE} began. Run `shift` first.")
    if ghosts := ghosts_in(ctx, CAPTURED):
        raise Unmet(
            f"The table {CAPTURED} still has driver {min(ghosts)}, who was deleted. Debezium told of that with a record that "
            "has no value. What does the sink do with such a record?"
        )


@jdbc.requires("The worker died before it stored its offsets", after=deletes_arrive)
def worker_died(ctx: CheckContext) -> None:
    copies = Counter((key_of(record), record.value()) for record in filled(ctx, POLLED, SENT))
    if max(copies.values()) == 1:
        raise Unmet(f"The topic {POLLED} has no row twice. Was the worker killed already? Call outage(), and look again.")


@jdbc.requires("You know whom polled_driver still has", after=deletes_arrive)
def ghosts_are_known(ctx: CheckContext) -> None:
    ghosts = ctx.answer("ghosts", set[int], "ids in the table polled_driver that driver lacks")
    if ghosts != ghosts_in(ctx, POLLED):
        raise Unmet(f"`ghosts` is {sorted(ghosts)}. Compare the ids in the table {POLLED} with those in {TABLE}.")
