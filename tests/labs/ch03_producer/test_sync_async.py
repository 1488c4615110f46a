"""Records sent one by one and at once: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from confluent_kafka import Producer

from kafkalab import Cluster
from support import PATIENCE, Record, Told, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "03_sync_async"
REPLICATION = "03_replication"
START = 1_790_000_000_000


def long(number: int) -> bytes:
    return number.to_bytes(8, "big")


def greetings(first: int, count: int = 5) -> list[Record]:
    return [(long(START + n), f"Hello Mom {START + n}", n % 13) for n in range(first, first + count)]


def rows(cluster: Cluster, records: list[Record]) -> list[tuple[int, int, int]]:
    """Send, and return (key, partition, offset) as reported."""
    told = []
    producer = Producer(cluster.client_config())
    for key, value, partition in records:
        producer.produce(
            "my-example-topic",
            value,
            key=key,
            partition=partition,
            on_delivery=lambda _, m: told.append((int.from_bytes(m.key(), "big"), m.partition(), m.offset())),
        )
    assert producer.flush(PATIENCE) == 0
    return told


def test_sync_async_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    passed, said = verdict(LAB, clean, written=[], reported=[])
    assert not passed and "my-example-topic is empty" in said and said.count("Not looked at yet") == 3


def test_sync_async_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    written, reported = rows(clean, greetings(0)), rows(clean, greetings(100))
    verdict.passes(LAB, clean, written=written, reported=reported)
    verdict.passes(LAB, clean, written=np.array(written), reported=[(*row, "more") for row in reported])
    verdict.says("`reported` has 3 rows, not 5. When does", LAB, clean, written=written, reported=reported[:3])
    verdict.says("`reported` is empty", LAB, clean, written=written, reported=[])
    verdict.says("In one of its rows, `row` should be a tuple of 3, not of 1", LAB, clean, written=written, reported=[(1,)])
    as_bytes = [(long(key), partition, offset) for key, partition, offset in reported]
    verdict.says("should be a whole number, not bytes", LAB, clean, written=written, reported=as_bytes)
    verdict.says("the same key more than once", LAB, clean, written=written[:1] * 5, reported=reported)
    moved = [(key, partition, offset + 1) for key, partition, offset in written]
    verdict.says("Where do you get the partition and the offset from?", LAB, clean, written=moved, reported=reported)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ((str(START), f"Hello Mom {START}", 0), "How many bytes does a long have? To try again, run from the cell with"),
        ((START.to_bytes(8, "little"), f"Hello Mom {START}", 0), "with the highest byte first?"),
        ((long(START), "Hello Mom 1", 0), "Which number belongs in it?"),
        ((None, "Hello Mom", 0), "No record in my-example-topic has a key"),
    ],
)
def test_sync_async_wrong_records(clean: Cluster, verdict: Verdict, record: Record, says: str) -> None:
    create(clean, "my-example-topic", 13)
    put(clean, "my-example-topic", [record])
    verdict.says(says, LAB, clean, written=[], reported=[])


def test_replication_wrong_counts(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    after = Told(clean, ("stop", 1), ("restart", 1))
    verdict.says("`missing` is 0. Which partitions have", REPLICATION, after, missing=0, missing_after=13)
    verdict.says("`missing_after` is 13", REPLICATION, after, missing=13, missing_after=13)
    verdict.says("Give check() your answer as ledger=", REPLICATION, after, missing=13, missing_after=0)
    verdict.says("`ledger` should be the LedgerProducer, not int", REPLICATION, after, missing=13, missing_after=0, ledger=5)


def test_replication_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    passed, said = verdict(REPLICATION, Told(clean), missing=None, missing_after=None, ledger=SimpleNamespace(entries=[]))
    assert not passed and "0 of 4" in said and "Broker 1 hasn't been down yet" in said


def test_replication_right_and_with_another_ledger(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    places = rows(clean, greetings(0, 400))
    after = Told(clean, ("kill", 1), ("restart", 1))
    entries = [SimpleNamespace(partition=p, offset=offset, value=f"Hello Mom {key}") for key, p, offset in places]
    right = {"missing": 13, "missing_after": 0, "ledger": SimpleNamespace(entries=entries)}
    verdict.passes(REPLICATION, after, **right)
    few = SimpleNamespace(entries=entries[:300])
    verdict.says("The ledger has 300 records", REPLICATION, after, **right | {"ledger": few})
    lost = SimpleNamespace(entries=[*entries, SimpleNamespace(partition=0, offset=10**6, value="Hello Mom 7")])
    verdict.says("lacks 1 record of the ledger, 'Hello Mom 7' for one", REPLICATION, after, **right | {"ledger": lost})
