"""A topic with a remote tier: when its segments move, who reads them there, what an outage does, and when they expire."""

from __future__ import annotations

from kafkalab.checks.brokers import faulted
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import place_of, read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.logs import view_of
from kafkalab.checks.topics import each_once, existing, has_shape, holds, in_sync
from kafkalab.checks.wording import counted
from kafkalab.cluster.log_reader import LogView
from kafkalab.cluster.offsets import watermarks

__all__ = ["lab"]

TOPIC, GROUP = "readings", "auditor"
FIRST, ALL = 10, 20
A_MINUTE, SOME_SECONDS = 60_000, 10_000

lab = Lab("12_tiered_storage")


def look(ctx: CheckContext, broker: int | None = None) -> LogView:
    """Return the topic's log on a broker (by default its leader) and in the remote tier."""

    def told(view: LogView) -> bool:
        return view.offsets.start is not None and view.offsets.local_start is not None

    return view_of(ctx, TOPIC, told, broker=broker)


def on_disk_from(view: LogView) -> int:
    """Return the first offset on the broker's disk."""
    if not view.segments:
        raise Unmet(f"Broker {view.broker} has no segment of {TOPIC}: {view.unseen or 'its folder is empty'}.")
    return view.segments[0].base_offset


def has_moved(ctx: CheckContext, count: int) -> None:
    """Raise `Unmet` unless this many records (except perhaps the last) are in the tier, and gone from the leader's disk."""
    view = look(ctx)
    there = {offset for s in view.remote for b in s.batches for offset in range(b.base_offset, b.last_offset + 1)}
    if missing := sorted(set(range(count - 1)) - there):
        raise Unmet(
            f"The remote tier holds {counted(len(there), 'record')} of {TOPIC}, and offset {missing[0]} isn't among them. Did "
            "you wait until the brokers had moved everything?"
        )
    if (local := view.offsets.local_start) is None:
        raise Unmet(f"The leader of {TOPIC} doesn't tell where its disk begins. Is every broker running?")
    if local < count - 1:
        raise Unmet(
            f"The tier has everything, but the leader's disk still begins at offset {local}. How long may a broker keep what "
            "it has moved?"
        )


# -- move -------------------------------------------------------------------------------------------------------------

move = lab.add_check(
    "12_tiered",
    "Move segments to the remote tier, and read them",
    hints=(
        "Two settings of the topic: one switches the remote tier on, the other says how long a broker keeps what it has moved.",
        "They are remote.storage.enable and local.retention.ms. The latter is in milliseconds.",
        "wait_until(lambda: eye.view.offsets.local_start == 10, 60, …) waits until nothing is left on the leader's disk.",
        "Neither the consumer nor Spark needs to know of the tier. Read as you read any topic, and let Spark collect the rows.",
    ),
)
is_shaped = move.requires(f"{TOPIC} has 1 partition with 3 replicas")(has_shape(TOPIC, 1, 3))


@move.requires(f"{TOPIC} has a remote tier, and brokers keep what they moved for some seconds", after=is_shaped)
def is_tiered(ctx: CheckContext) -> None:
    config = ctx.topic_config(TOPIC)
    if (found := config["remote.storage.enable"]) != "true":
        raise Unmet(f"The remote.storage.enable of {TOPIC} is {found}. Which of its segments do brokers move then?")
    by_age, by_size = int(config["local.retention.ms"]), int(config["local.retention.bytes"])
    if not 0 <= by_age <= SOME_SECONDS and by_size < 0:
        raise Unmet(
            f"The local.retention.ms of {TOPIC} is {by_age}, where -2 means the same as retention.ms. How long does the lab "
            "let brokers keep what they have moved?"
        )


@move.requires("The tier holds its records, and the leader's disk doesn't", after=is_tiered)
def records_have_moved(ctx: CheckContext) -> None:
    holds(TOPIC, FIRST)(ctx)
    has_moved(ctx, FIRST)


@move.requires(f"The group {GROUP} has read everything", after=records_have_moved)
def group_has_read(ctx: CheckContext) -> None:
    read_everything(ctx, GROUP, TOPIC)


@move.requires("Spark has read everything, too", after=records_have_moved)
def spark_has_read(ctx: CheckContext) -> None:
    rows = ctx.answer("by_spark", list[object], f"the rows that Spark read from {TOPIC}")
    read = dict(_place_and_time(row) for row in rows)
    there = {place_of(record)[1]: record.timestamp()[1] for record in ctx.records(TOPIC)}
    if missing := sorted(there.keys() - read.keys()):
        raise Unmet(
            f"{TOPIC} has {counted(len(there), 'record')}, and Spark's rows lack offset {missing[0]}. From where did it read?"
        )
    if other := sorted(offset for offset, time in read.items() if time != there.get(offset)):
        raise Unmet(
            f"The row of offset {other[0]} has another timestamp than the record in {TOPIC}. Did Spark read this topic, and "
            "did it read it after you had sent the records?"
        )


def _place_and_time(row: object) -> tuple[int, int]:
    """Return the offset of a row that Spark read from Kafka, and its timestamp in milliseconds."""
    if not hasattr(row, "asDict"):  # a Row of PySpark, which takes a second to import
        raise Unmet(f"`by_spark` holds {row!r}, which isn't a row of Spark. What does `collect()` return?")
    columns = row.asDict()
    if missing := {"offset", "timestamp"} - columns.keys():
        raise Unmet(f"The rows in `by_spark` have no column {min(missing)}. Which columns does Spark's Kafka source give?")
    if not hasattr(columns["timestamp"], "timestamp"):
        found = f"The timestamp in `by_spark` is {columns['timestamp']!r}"
        raise Unmet(f"{found}. Leave the column as Spark's Kafka source gives it.")
    return columns["offset"], round(columns["timestamp"].timestamp() * 1000)


# -- a follower -------------------------------------------------------------------------------------------------------

follower = lab.add_check(
    "12_tiered_follower",
    "Rebuild a follower that lost its log",
    hints=(
        "A broker whose files you take away has to be down. Kill it, or shut it down cleanly.",
        'cluster.lose_log(broker, "readings") removes the folder from its disk.',
        'Restart it, and wait: cluster.wait_for(lambda view: view.in_sync("readings"), …).',
    ),
)


def bereft(ctx: CheckContext) -> int:
    """Return the broker that last lost its log."""
    if not (lost := faulted(ctx, "lose a log of")):
        raise Unmet("No broker has lost its log yet. cluster.lose_log takes it from the disk of a broker that is down.")
    return lost[-1]


@follower.requires("A broker lost its log, and was started again")
def was_restarted(ctx: CheckContext) -> None:
    broker = bereft(ctx)
    done = [fault.verb for fault in ctx.cluster.faults if fault.broker == broker]
    if "restart" not in done[done.index("lose a log of") :]:
        raise Unmet(f"Broker {broker} lost its log, and wasn't started again.")


is_back = follower.requires("All replicas are in sync", after=was_restarted)(in_sync(TOPIC))


@follower.requires("Its log starts at offset 0, and its disk holds only what the tier didn't have", after=is_back)
def disk_is_short(ctx: CheckContext) -> None:
    broker = bereft(ctx)
    view = look(ctx, broker)
    if (start := view.offsets.start) is None:
        raise Unmet(f"The leader of {TOPIC} doesn't tell where its log starts. Is every broker running?")
    if start != 0:
        raise Unmet(f"The log of {TOPIC} starts at offset {start}. Look at this before you let records expire.")
    if (local := on_disk_from(view)) < FIRST - 1:
        raise Unmet(f"The disk of broker {broker} begins at offset {local}. What was in the tier when it lost its log?")


# -- an outage --------------------------------------------------------------------------------------------------------

outage = lab.add_check(
    "12_tiered_outage",
    "Write while the tier can't be reached",
    hints=(
        "cluster.remote_tier has a method for it. Its counterpart comes in the next step.",
        "First cut the tier off, then send. `send` has two parameters: the first number, and how many.",
    ),
)


@outage.requires("Brokers can't reach the tier")
def is_cut_off(ctx: CheckContext) -> None:
    if not ctx.cluster.remote_tier.is_cut_off:
        raise Unmet("Brokers reach the remote tier. Run this check after you have cut it off, and before you reconnect it.")


has_all = outage.requires(f"{TOPIC} holds 20 records", after=is_cut_off)(holds(TOPIC, ALL))


@outage.requires("The leader's disk has all that is not in the tier", after=has_all)
def nothing_is_lost(ctx: CheckContext) -> None:
    view = look(ctx)
    if (local := on_disk_from(view)) > FIRST:
        raise Unmet(
            f"The leader's disk begins at offset {local}, so {counted(local - FIRST, 'new record')} moved to the tier. Was it "
            "cut off before you sent them? To begin again, run the cells from the one that creates the topic."
        )


# -- after it ---------------------------------------------------------------------------------------------------------

back = lab.add_check(
    "12_tiered_back",
    "Find every acknowledged record",
    hints=(
        "cluster.remote_tier.reconnect() lets brokers reach the tier again.",
        "The brokers try again by themselves. Wait as in part 1, for another offset.",
    ),
)


@back.requires("Brokers reach the tier")
def is_reconnected(ctx: CheckContext) -> None:
    if ctx.cluster.remote_tier.is_cut_off:
        raise Unmet("The remote tier is still cut off.")


@back.requires("The tier holds all 20 records, and the leader's disk doesn't", after=is_reconnected)
def all_have_moved(ctx: CheckContext) -> None:
    holds(TOPIC, ALL)(ctx)
    has_moved(ctx, ALL)


@back.requires("Each of them can be read, and none is there twice", after=all_have_moved)
def all_are_there(ctx: CheckContext) -> None:
    each_once(ctx, TOPIC, [f"reading {number}" for number in range(ALL)])


# -- retention --------------------------------------------------------------------------------------------------------

retention = lab.add_check(
    "12_tiered_retention",
    "Let records expire, wherever they are",
    hints=(
        "Local retention has a setting of its own. The total one is the setting that every topic has.",
        "kafka-configs.sh --alter --entity-type topics --entity-name readings --add-config … changes a topic's setting.",
        "Then wait until the log start offset has moved, and until the tier has no file of the topic.",
    ),
)


@retention.requires(f"{TOPIC} deletes records that are older than some seconds")
def age_is_limited(ctx: CheckContext) -> None:
    existing(ctx, TOPIC)
    if not 0 <= (age := int(ctx.topic_config(TOPIC)["retention.ms"])) <= A_MINUTE:
        raise Unmet(f"The retention.ms of {TOPIC} is {age}. How many milliseconds old may a record get, local or remote?")


@retention.requires("Its log starts where it ends", after=age_is_limited)
def log_is_empty(ctx: CheckContext) -> None:
    [(start, end)] = watermarks(ctx.cluster, TOPIC).values()
    if end < ALL:
        raise Unmet(f"{TOPIC} was given {counted(end, 'record')}, not {ALL}. Go through the parts before this one first.")
    if start < end:
        raise Unmet(f"{TOPIC} still holds offsets {start} to {end - 1}. Did you give the brokers time to look?")


@retention.requires("The tier has no segment of it any more", after=log_is_empty)
def tier_is_empty(ctx: CheckContext) -> None:
    if left := [path for path in ctx.cluster.remote_tier.files(TOPIC) if path.suffix == ".log"]:
        raise Unmet(
            f"The remote tier still has {counted(len(left), 'segment')} of {TOPIC}. The leader deletes them a moment after the "
            "log start offset has moved."
        )
