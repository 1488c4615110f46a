"""A poll loop, three consumers in one group and in three, and the size of a batch."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import Place, existing_group, has_read_everything, places, read_everything, read_once
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPIC, GROUP = "my-example-topic", "KafkaExampleConsumer"
PARTITIONS = 13

lab = Lab("04_groups")

# -- 1: the poll loop -----------------------------------------------------------------------------------------------

poll_loop = lab.add_check(
    "04_poll_loop",
    "A poll loop",
    hints=(
        "The loop has three cases: nothing came, an error came, a record came.",
        "`consumer.poll(0.1)` returns None or a message; `message.error()` is None for a record.",
        "`consumer.commit(asynchronous=False)` commits the offsets after all that `poll` has returned, and raises the error if "
        "that fails.",
        'Settings: `group_id`, `enable_auto_commit=False`, `auto_offset_reset="earliest"`. Subscribe before the first poll.',
    ),
)


@poll_loop.requires("my-example-topic has 13 partitions")
def topic_has_its_shape(ctx: CheckContext) -> None:
    if (found := len(existing(ctx, TOPIC))) != PARTITIONS:
        raise Unmet(f"It has {counted(found, 'partition')}. How many does the text ask for?")


@poll_loop.requires("It holds greetings whose keys are longs", after=topic_has_its_shape)
def greetings_are_there(ctx: CheckContext) -> None:
    records = ctx.records(TOPIC)
    if len(records) < 5:
        raise Unmet(f"It holds {counted(len(records), 'record')}. Did you run the cell that sends five?")
    for m in records:
        key = m.key() or b""
        if len(key) != 8 or (m.value() or b"") != f"Hello Mom {int.from_bytes(key, 'big')}".encode():
            raise Unmet(
                f"The record at offset {m.offset()} of partition {m.partition()} isn't a greeting with its own key as a long."
            )


@poll_loop.requires("Your loop read every record once", after=greetings_are_there)
def loop_read_everything(ctx: CheckContext) -> None:
    read = ctx.answer("read", list[Place], "(partition, offset) of each record that your loop returned")
    read_once(read, places(ctx, TOPIC), "Your loop")


poll_loop.requires("KafkaExampleConsumer has committed all of them", after=greetings_are_there)(
    has_read_everything(GROUP, TOPIC)
)

# -- 2: one group ---------------------------------------------------------------------------------------------------

same_group = lab.add_check(
    "04_same_group",
    "Three consumers, one group",
    hints=(
        "Use the group id of part 1, so that the group continues from there.",
        "Send when all three have joined: `wait_until_shared(GROUP, 3)`.",
        "`wait_until_read(GROUP)` waits until the group has committed all that was sent.",
    ),
)


def _read_by_name(ctx: CheckContext) -> dict[str, list[Place]]:
    return ctx.answer("read", dict[str, list[Place]], "who read what: consumer → list of (partition, offset)")


@same_group.requires("KafkaExampleConsumer has three members with 5, 4 and 4 partitions")
def three_members_share(ctx: CheckContext) -> None:
    members = existing_group(ctx, GROUP).members
    if len(members) != 3:
        raise Unmet(f"{GROUP} has {counted(len(members), 'member')}, not 3.")
    sizes = sorted((len(m.partitions) for m in members), reverse=True)
    if sizes != [5, 4, 4]:
        raise Unmet(
            f"Its members are assigned {', '.join(map(str, sizes))} partitions. Did you wait until the rebalance was over?"
        )


@same_group.requires("Together they read the 25 records, without a duplicate")
def records_are_shared(ctx: CheckContext) -> None:
    read = [place for found in _read_by_name(ctx).values() for place in found]
    if (again := len(read) - len(set(read))) > 0:
        raise Unmet(
            f"Among the {len(read)} records that they read are {counted(again, 'duplicate')}. Are all three in the same group?"
        )
    if len(read) > 25:
        raise Unmet(
            f"Together they read {len(read)} records, not the 25 that you sent. Did this group commit what it read in part 1?"
        )
    if len(read) < 25:
        raise Unmet(
            f"Together they read {counted(len(read), 'record')}, not the 25 that you sent. Did you wait for all of them?"
        )


@same_group.requires("Each partition was read by one of them", after=records_are_shared)
def partitions_have_one_reader(ctx: CheckContext) -> None:
    readers: dict[int, set[str]] = {}
    for name, found in _read_by_name(ctx).items():
        for partition, _ in found:
            readers.setdefault(partition, set()).add(name)
    for partition, names in sorted(readers.items()):
        if len(names) > 1:
            raise Unmet(
                f"{' and '.join(sorted(names))} both read from partition {partition}. Did you send the records before the "
                "rebalance was over?"
            )


# After part 1 the group has committed everything, too: this only means something once the 25 were read.
same_group.requires("The group has committed all of them", after=records_are_shared)(has_read_everything(GROUP, TOPIC))

# -- 3: different groups --------------------------------------------------------------------------------------------

different_groups = lab.add_check(
    "04_different_groups",
    "Three consumers, three groups",
    hints=(
        "What makes two consumers members of the same group? Give each of them another one.",
        'Names like `f"{GROUP}-{n}"` will do. Each of them reads 35 records, since it starts at the beginning.',
    ),
)


@different_groups.requires("Three more groups have committed all records")
def three_groups_committed(ctx: CheckContext) -> None:
    names = [name for name in ctx.view().groups if name.startswith(f"{GROUP}-")]
    if len(names) != 3:
        raise Unmet(f"There are {len(names)} groups with names that begin with {GROUP}-. How many does the text ask for?")
    for name in names:
        read_everything(ctx, name, TOPIC)


@different_groups.requires("Each of them read every record once")
def each_group_read_everything(ctx: CheckContext) -> None:
    read, wanted = _read_by_name(ctx), places(ctx, TOPIC)
    if len(read) != 3:
        raise Unmet(f"`read` holds the records of {counted(len(read), 'group')}, not of 3.")
    for group, found in read.items():
        read_once(found, wanted, group)


# -- 4: how many at a time ------------------------------------------------------------------------------------------

batch_size = lab.add_check(
    "04_batch_size",
    "5 at a time, and 500",
    hints=(
        "A member that leaves before it has read and committed its records leaves the rest to the others: wait first.",
        "`wait_until_read(GROUP)` waits until the group has committed all that was sent, whoever read it.",
        'Send the last 100 while nobody reads, then start `Member(GROUP, "large", batch=500)`.',
    ),
)


def _polls(ctx: CheckContext) -> tuple[list[list[Place]], list[list[Place]]]:
    given = ctx.answer("polls", dict[int, list[list[Place]]], "what each call returned: size of the batch → list of lists")
    small, large = given.get(5, []), given.get(500, [])
    if not any(small):
        raise Unmet("No batch of at most 5 was read yet.")
    if not any(large):
        raise Unmet("No batch of at most 500 was read yet.")
    return small, large


@batch_size.requires("No batch of the first kind holds more than 5 records")
def small_batches_are_small(ctx: CheckContext) -> None:
    small, _ = _polls(ctx)
    if (most := max(map(len, small))) > 5:
        raise Unmet(f"One call returned {most} records. Which n did you give it?")


@batch_size.requires("A batch of the second kind holds more, from several partitions", after=small_batches_are_small)
def large_batches_are_larger(ctx: CheckContext) -> None:
    _, large = _polls(ctx)
    if max(map(len, large)) <= 5:
        raise Unmet("With n = 500 no call returned more than 5 records either. Were more of them waiting when it started?")
    if max(len({p for p, _ in poll}) for poll in large) < 2:
        raise Unmet("No batch holds records of two partitions.")


@batch_size.requires("The ten times 50 records were read once", after=small_batches_are_small)
def ten_times_50_were_read(ctx: CheckContext) -> None:
    small, large = _polls(ctx)
    sent, read = len(places(ctx, TOPIC)), [place for poll in (*small, *large) for place in poll]
    if sent < 535:
        raise Unmet(f"The topic holds {sent} records. 35 were there before this part. Did you send ten times 50?")
    if again := len(read) - len(set(read)):
        raise Unmet(
            f"Among the {len(read)} records read in this part are {counted(again, 'duplicate')}. Did a member leave before it "
            "had committed?"
        )
    if len(read) < 500:  # and 5 that were left from part 3, unless an earlier run of this part read them
        raise Unmet(f"In this part {len(read)} records were read, and you sent ten times 50. Did you wait for all of them?")


@batch_size.requires("The last member owns all 13 partitions")
def survivor_owns_everything(ctx: CheckContext) -> None:
    members = existing_group(ctx, GROUP).members
    if len(members) != 1:
        raise Unmet(f"{GROUP} has {counted(len(members), 'member')}, not 1.")
    if (owned := len(members[0].partitions)) != PARTITIONS:
        raise Unmet(f"It owns {counted(owned, 'partition')}. Did you wait until the rebalance was over?")


batch_size.requires("The group has committed all of them", after=ten_times_50_were_read)(has_read_everything(GROUP, TOPIC))
