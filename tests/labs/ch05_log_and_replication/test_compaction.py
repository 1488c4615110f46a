"""Compacted topics: each wrong answer gets its sentence, and right ones pass, however they were reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafkalab import Cluster, wait_until
from support import PATIENCE, Verdict, create, delete

pytestmark = pytest.mark.cluster

CREATE, COMPACT, TOMBSTONE = "05_compact_create", "05_compaction", "05_tombstone"
TOPIC = "changes"
CHANGES = ("K1V5", "K5V2", "K2V7", "K7V1", "K8V4", "K4V6", "K1V1", "K1V2", "K1V9", "K9V6", "K8V22", "K2V25")
HISTORY = tuple((change[:2], change[2:]) for change in CHANGES)
LEFT = [1, 3, 5, 8, 9, 10, 11]
ROLL = ("K0", "roll")
SOON = {"min_cleanable_dirty_ratio": "0.01", "delete_retention_ms": "0"}
ONE_EACH = {"index_interval_bytes": "1", "segment_index_bytes": "12"}  # a segment for each batch


def changes(cluster: Cluster, **config: str) -> None:
    """The topic, as right as can be but for this."""
    create(cluster, TOPIC, 1, 1, **{"cleanup_policy": "compact", **SOON, **ONE_EACH, **config})


def write(cluster: Cluster, *records: tuple[str | None, str | bytes | None], timestamps: Sequence[int] = ()) -> None:
    """Each in a batch of its own."""
    producer = Producer(cluster.client_config())
    for number, (key, value) in enumerate(records):
        producer.produce(TOPIC, value, key=key, timestamp=timestamps[number] if timestamps else 0)
        assert producer.flush(PATIENCE) == 0


def offsets(cluster: Cluster) -> list[int]:
    """What a consumer gets."""
    consumer = Consumer(cluster.client_config(group_id="test", enable_auto_commit=False, enable_partition_eof=True))
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found = []
    while (record := consumer.poll(20)) is not None and record.error() is None:
        found.append(record.offset())
    consumer.close()
    return found


def wait_for(cluster: Cluster, left: list[int]) -> None:
    """Until the cleaner left these of the history."""
    wait_until(lambda: [o for o in offsets(cluster) if o < 12] == left, PATIENCE, f"{left}", last_seen=lambda: offsets(cluster))


def untouched(cluster: Cluster) -> None:
    pass


# -- 05_compact_create ------------------------------------------------------------------------------------------------


def test_compact_create_right(cleaning: Cluster, verdict: Verdict) -> None:
    create(cleaning, "customers", 1, 1, cleanup_policy="compact")
    verdict.passes(CREATE, cleaning)
    delete(cleaning, "customers")
    create(cleaning, "customers", 1, 1)
    verdict.says("The cleanup.policy of customers is delete", CREATE, cleaning)
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "customers", incremental_configs=[entry])
    admin = AdminClient(cleaning.client_config())
    admin.incremental_alter_configs([resource])[resource].result()  # afterwards will do
    wait_until(lambda: verdict(CREATE, cleaning)[0], PATIENCE, "the setting to be known")


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'customers'"),
        (lambda c: create(c, "customers", 3, 1, cleanup_policy="compact"), "customers has 3 partitions"),
        (lambda c: create(c, "customers", 1, 3, cleanup_policy="compact"), "has 3 replicas, not 1"),
        (
            lambda c: create(c, "customers", 1, 1, cleanup_policy="compact,delete"),
            "cleanup.policy of customers is compact,delete",
        ),
    ],
    ids=["untouched", "partitions", "replicas", "forgets"],
)
def test_compact_create_wrong(cleaning: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(cleaning)
    verdict.says(sentence, CREATE, cleaning)


# -- 05_compaction and 05_tombstone -----------------------------------------------------------------------------------


def test_a_segment_for_each_record(cleaning: Cluster, verdict: Verdict) -> None:
    changes(cleaning)
    verdict.says("changes is empty", COMPACT, cleaning)
    write(cleaning, *HISTORY[:11])
    verdict.says("changes was given 11 records so far", COMPACT, cleaning)
    write(cleaning, HISTORY[11])
    wait_for(cleaning, sorted([*LEFT, 2]))
    verdict.says("Offset 2 is still there, though a later record has the same key, K2", COMPACT, cleaning)
    write(cleaning, ROLL)
    wait_for(cleaning, LEFT)
    verdict.passes(COMPACT, cleaning)

    verdict.says("K5 has the value V2, at offset 1", TOMBSTONE, cleaning)
    write(cleaning, ("K5", b""), ROLL)
    wait_for(cleaning, LEFT[1:])
    verdict.says("K5 has an empty value, which is a value, too, at offset 13", TOMBSTONE, cleaning)
    write(cleaning, ("K5", None), ROLL)
    wait_until(lambda: 13 not in offsets(cleaning), PATIENCE, "the empty value to go")
    verdict.says("The tombstone is still there, at offset 15. delete.retention.ms is 0 now.", TOMBSTONE, cleaning)
    until_the_tombstone_goes(cleaning)
    verdict.passes(TOMBSTONE, cleaning)

    write(cleaning, ("K7", None), ROLL)
    wait_until(lambda: 3 not in offsets(cleaning), PATIENCE, "K7 to go")
    verdict.says("The history's last value of K7 isn't at offset 3", TOMBSTONE, cleaning)
    verdict.says("Offset 1 is gone, too, and with it the history's last value of K5", COMPACT, cleaning)


def until_the_tombstone_goes(cluster: Cluster) -> None:
    stone = max(offsets(cluster)) - 1

    def gone() -> bool:
        write(cluster, ROLL)
        return stone not in offsets(cluster)

    wait_until(gone, PATIENCE, "the tombstone to go", interval=0.5)


def test_all_in_one_segment(cleaning: Cluster, verdict: Verdict) -> None:
    changes(cleaning, segment_ms="1000", index_interval_bytes="4096", segment_index_bytes="1048576")
    now = int(time.time() * 1000)
    write(cleaning, *HISTORY, timestamps=[now] * 12)
    verdict.says("Offset 0 is still there", COMPACT, cleaning)  # all of it is active
    verdict.says("K5 has the value V2, at offset 1", TOMBSTONE, cleaning)
    ages = count(now, 2000)
    next(ages)
    write(cleaning, ROLL, timestamps=[next(ages)])
    wait_for(cleaning, LEFT)
    verdict.passes(COMPACT, cleaning)
    write(cleaning, ("K5", None), ROLL, timestamps=[next(ages), next(ages)])
    wait_for(cleaning, LEFT[1:])
    verdict.says("The tombstone is still there", TOMBSTONE, cleaning)
    write(cleaning, ROLL, timestamps=[next(ages)])
    wait_until(lambda: 13 not in offsets(cleaning), PATIENCE, "the tombstone to go")
    verdict.passes(TOMBSTONE, cleaning)


def never_compacted(cluster: Cluster) -> None:
    changes(cluster, cleanup_policy="delete")
    write(cluster, *HISTORY, ROLL)


def in_another_order(cluster: Cluster) -> None:
    changes(cluster)
    write(cluster, *reversed(HISTORY), ROLL)


def rolled_with_a_key_of_the_history(cluster: Cluster) -> None:
    changes(cluster)
    write(cluster, *HISTORY, ("K1", "roll"), ROLL)
    wait_for(cluster, [1, 3, 5, 9, 10, 11])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (untouched, "There is no topic 'changes'"),
        (never_compacted, "The cleanup.policy of changes is delete"),
        (in_another_order, "but the history has another change in that place"),
        (rolled_with_a_key_of_the_history, "Offset 8 is gone, too, and with it the history's last value of K1"),
    ],
    ids=["untouched", "never_compacted", "in_another_order", "rolled_with_a_key_of_the_history"],
)
def test_compaction_wrong(cleaning: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(cleaning)
    verdict.says(sentence, COMPACT, cleaning)
