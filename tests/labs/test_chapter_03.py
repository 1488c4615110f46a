"""The labs of chapter 03: each wrong answer is told apart from the right one, with a sentence that helps."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer, murmur2

from kafkalab import Cluster

from .support import Record, Verdict, create, put

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("application")]

STOCKS = "IBM SUN GOOG INEL UBER ABC XYZ DEF AAA BBB CCC DDD EEE FFF".split()

# -- 03_partitioner -------------------------------------------------------------------------------------------------


def price(name: str) -> str:
    return f'{{"cents": 50, "dollars": 60, "name": "{name}"}}'


def right_place(name: str, partitions: int = 5) -> int:
    return partitions - 1 if name in ("IBM", "UBER") else murmur2(name.encode(), partitions - 1)


def by_hash_alone(name: str, partitions: int = 5) -> int:
    return murmur2(name.encode(), partitions)


def others_everywhere(name: str, partitions: int = 5) -> int:
    return partitions - 1 if name in ("IBM", "UBER", "SUN") else murmur2(name.encode(), partitions - 1)


def others_on_one(name: str, partitions: int = 5) -> int:
    return partitions - 1 if name in ("IBM", "UBER") else 0


def one_too_few(name: str, partitions: int = 5) -> int:
    return right_place(name, partitions - 1)


class AcceptsAll:
    """Refuses nothing."""

    def __init__(self, producer: Producer, topic: str, important: object) -> None: ...


def trips(producer: Producer, topic: str, important: list[str]) -> None:
    raise ZeroDivisionError("integer modulo by zero")


class Choosing:
    """Puts the important ones on the last partition."""

    def __init__(self, producer: Producer, topic: str, important: object) -> None:
        self.met: list[str] = []

    def other(self, name: str) -> int:
        raise NotImplementedError

    def partition(self, name: str) -> int:
        return 4 if name in ("IBM", "UBER") else self.other(name)


class ByPythonsHash(Choosing):
    def other(self, name: str) -> int:
        return hash(name) % 4


class ByPythonsHashOfBytes(Choosing):
    def other(self, name: str) -> int:
        return abs(hash(name.encode())) % 4


class InOrderOfAppearance(Choosing):
    def other(self, name: str) -> int:
        if name not in self.met:
            self.met.append(name)
        return self.met.index(name) % 4


def topics_of_the_partitioner(cluster: Cluster, partitions: int = 5) -> None:
    create(cluster, "stock-prices", partitions)
    create(cluster, "single-copy", 5, 1)
    create(cluster, "one-partition", 1)


def test_partitioner_untouched(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    passed, said = verdict("03_partitioner", clean, partitioner=None)
    assert not passed and "stock-prices is empty" in said and "Give check() partitioner=" in said


def test_partitioner_right(clean: Cluster, verdict: Verdict) -> None:
    from stocks.partitioner import ImportantStocks

    topics_of_the_partitioner(clean)
    for topic in ("stock-prices", "single-copy"):
        put(clean, topic, [(name, price(name), right_place(name)) for name in STOCKS])
    verdict.passes("03_partitioner", clean, partitioner=ImportantStocks)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (by_hash_alone, "Which is the last one of stock-prices?"),
        (others_everywhere, "SUN is in partition 4 with the important ones"),
        (others_on_one, "They should share the load of all the rest"),
        (one_too_few, "is important, and has records in partition 3"),
    ],
)
def test_partitioner_wrong_places(clean: Cluster, verdict: Verdict, place: Callable[[str], int], says: str) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "stock-prices", [(name, price(name), place(name)) for name in STOCKS])
    verdict.says(says, "03_partitioner", clean)


def test_partitioner_that_counts_what_is_available(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "single-copy", [(name, price(name), right_place(name, 4)) for name in STOCKS])
    verdict.says("that are not available", "03_partitioner", clean)


def test_partitioner_that_changes_its_mind(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "stock-prices", [("SUN", price("SUN"), p) for p in (0, 1)])
    passed, said = verdict("03_partitioner", clean)
    assert not passed and "Records of SUN are in partitions 0 and 1" in said and "No price of IBM" in said


def test_partitioner_that_refuses_nothing_or_trips(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    verdict.says("It accepts no important stock at all", "03_partitioner", clean, partitioner=AcceptsAll)
    verdict.says("it ends with ZeroDivisionError", "03_partitioner", clean, partitioner=trips)
    verdict.says("should be your class, not a str", "03_partitioner", clean, partitioner="IBM,UBER")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (ByPythonsHash, "It chooses by Python's hash()"),
        (ByPythonsHashOfBytes, "It chooses by Python's hash()"),
        (InOrderOfAppearance, "What else than its name does the choice depend on?"),
        (AcceptsAll, "it ends with AttributeError"),
    ],
)
def test_partitioner_that_another_process_would_not_agree_with(
    clean: Cluster, verdict: Verdict, wrong: type, says: str
) -> None:
    topics_of_the_partitioner(clean)
    verdict.says(says, "03_partitioner", clean, partitioner=wrong)


# -- 03_sync_async, 03_replication ----------------------------------------------------------------------------------

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
    assert producer.flush(20) == 0
    return told


def test_sync_async_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    passed, said = verdict("03_sync_async", clean, written=[], reported=[])
    assert not passed and "my-example-topic is empty" in said and "written tells of 0 records" in said


def test_sync_async_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    written, reported = rows(clean, greetings(0)), rows(clean, greetings(100))
    verdict.passes("03_sync_async", clean, written=written, reported=reported)
    verdict.says("Reports come only while you poll or flush", "03_sync_async", clean, written=written, reported=reported[:3])
    moved = [(key, partition, offset + 1) for key, partition, offset in written]
    verdict.says("There is another record", "03_sync_async", clean, written=moved, reported=reported)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ((str(START), f"Hello Mom {START}", 0), "A long is 8 bytes, not its digits"),
        ((START.to_bytes(8, "little"), f"Hello Mom {START}", 0), "with the highest byte first?"),
        ((long(START), "Hello Mom 1", 0), "Which number should be in it?"),
        ((None, "Hello Mom", 0), "No record has a key"),
    ],
)
def test_sync_async_wrong_records(clean: Cluster, verdict: Verdict, record: Record, says: str) -> None:
    create(clean, "my-example-topic", 13)
    put(clean, "my-example-topic", [record])
    verdict.says(says, "03_sync_async", clean, written=[], reported=[])


def test_replication_wrong_counts(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "my-example-topic", 13)
    passed, said = verdict("03_replication", clean, missing=0, missing_after=13)
    assert not passed and "Broker 1 was not shut down yet" in said and "Broker 1 keeps a replica of every partition" in said
    verdict.says("missing_after is 13", "03_replication", clean, missing=13, missing_after=13)
    assert "Give check() ledger=" in said


# -- 03_stock_senders, 03_shutdown ----------------------------------------------------------------------------------


def as_java(name: str) -> int:
    return murmur2(name.encode(), 3)


def prices(name: str = "", value: str = "", partition: int | None = None) -> list[Record]:
    """A right price of every stock; of one of them another value, or in another partition."""
    fitting = {"GOOG": 450, "UBER": 700}

    def one(stock: str) -> Record:
        right = f'{{"cents": 50, "dollars": {fitting.get(stock, 60)}, "name": "{stock}"}}'
        mine = stock == name
        return stock, value if mine and value else right, partition if mine and partition is not None else as_java(stock)

    return [one(stock) for stock in STOCKS]


def test_stock_senders_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "stock-prices", 3)
    verdict.says("stock-prices is empty", "03_stock_senders", clean, sent=0)


def test_stock_senders_right_and_flushed_too_early(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "stock-prices", 3)
    put(clean, "stock-prices", prices() * 100)
    verdict.passes("03_stock_senders", clean, sent=1400)
    verdict.says("The senders sent 1417 prices, and 1400 are in the topic", "03_stock_senders", clean, sent=1417)
    verdict.says("Did others send, too?", "03_stock_senders", clean, sent=1000)


@pytest.mark.parametrize(
    ("records", "says"),
    [
        (prices("IBM", "IBM 60.50"), "A value of IBM is not JSON"),
        (prices("IBM", '{"name": "IBM"}'), "has not the fields"),
        (prices("IBM", '{"cents": 50, "dollars": 60, "name": "SUN"}'), "A price of SUN has the key IBM"),
        (prices("IBM", '{"cents": 50, "dollars": 500, "name": "IBM"}'), "out of its range"),
        (prices("IBM", '{"cents": -9, "dollars": 60, "name": "IBM"}'), "out of its range"),
        (prices("IBM", partition=0), "where Java's producer would not put it"),
        (prices() + [("IBM", prices()[0][1], 0)], "Records of IBM are in partitions 0 and 2"),
        (prices()[1:], "No price of IBM"),
        ([*prices(), (None, "{}", 0)], "with the key '(no key)'"),
    ],
)
def test_stock_senders_wrong_records(clean: Cluster, verdict: Verdict, records: list[Record], says: str) -> None:
    create(clean, "stock-prices", 3)
    put(clean, "stock-prices", records)
    verdict.says(says, "03_stock_senders", clean, sent=len(records))


def test_shutdown(clean: Cluster, verdict: Verdict) -> None:
    for name in ("sigint", "sigterm", "sigkill"):
        create(clean, f"ended-by-{name}", 3)
        put(clean, f"ended-by-{name}", prices())
    right = {"SIGINT": (130, 14), "SIGTERM": (143, 14), "SIGKILL": (-9, None)}
    verdict.passes("03_shutdown", clean, endings=right)
    for wrong, says in (
        ({}, "endings has no 'SIGINT'"),
        ({**right, "SIGINT": (143, 14)}, "Did you send that signal, and no other?"),
        ({**right, "SIGTERM": (None, 14)}, "has not ended after SIGTERM"),
        ({**right, "SIGTERM": (143, 20)}, "tells of 20 sent until SIGTERM, and ended-by-sigterm has 14 records"),
        ({**right, "SIGINT": (130, None)}, "does not tell how many"),
        ({**right, "SIGKILL": (-9, 14)}, "Who is killed has no last words"),
    ):
        verdict.says(says, "03_shutdown", clean, endings=wrong)


# -- 03_durability, 03_all_in_sync, 03_order ------------------------------------------------------------------------


def test_durability_untouched(clean: Cluster, verdict: Verdict) -> None:
    passed, said = verdict("03_durability", clean, ledgers={}, lost={}, doubled={})
    assert not passed and "Broker 0 was not cut off yet" in said and "lost has no 'acks-0'" in said


def test_durability_miscounted(clean: Cluster, verdict: Verdict) -> None:
    class Ledger:
        entries = [SimpleNamespace(value=str(n)) for n in range(5)]

    names = ("acks-0", "acks-1", "acks-all")
    for name in names:
        create(clean, name, 1)
        put(clean, name, [(None, "0", 0), (None, "1", 0)])
    some, none = dict.fromkeys(names, 3), dict.fromkeys(names, 0)
    passed, said = verdict("03_durability", clean, ledgers=dict.fromkeys(names, Ledger()), lost=none, doubled=some)
    assert not passed and "lost['acks-0'] is 0" in said and "doubled['acks-0'] is 3" in said
    says = "3 acknowledged records of acks-all are missing"
    verdict.says(says, "03_durability", clean, ledgers=dict.fromkeys(names, Ledger()), lost=some, doubled=none)


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        ({"all": None, 1: None, 0: None}, "the name of an error, or 'acknowledged'"),
        ({"all": "_MSG_TIMED_OUT", 1: "acknowledged", 0: "acknowledged"}, "Let the producer not try again"),
        ({"all": "acknowledged", 1: "acknowledged", 0: "acknowledged"}, "acks=all was acknowledged"),
        ({"all": "NOT_ENOUGH_REPLICAS", 1: "NOT_ENOUGH_REPLICAS", 0: "acknowledged"}, "Was acks=1 given to the producer?"),
    ],
)
def test_all_in_sync_wrong(clean: Cluster, verdict: Verdict, outcomes: dict, says: str) -> None:
    create(clean, "needs-all-three", 1, min_insync_replicas="2")
    put(clean, "needs-all-three", [(None, "acks=all", 0)])
    passed, said = verdict("03_all_in_sync", clean, outcomes=outcomes)
    assert not passed and says in said, said
    assert "needs 2 replicas in sync" in said and "Broker 2 was not shut down yet" in said
    assert "acks=all is in the topic" in said


@pytest.mark.parametrize(
    ("hasty", "idempotent", "says"),
    [
        ("012345", "012345", "Nothing is doubled in hasty"),
        ("0112345", "012345", "hasty is in order"),
        ("0123", "012345", "Send 0 to 5 with send_five"),
        ("0123451", "01234512", "Which setting lets the broker recognize"),
        ("0123451", "021345", "each once and in order"),
    ],
)
def test_order_wrong(clean: Cluster, verdict: Verdict, hasty: str, idempotent: str, says: str) -> None:
    for topic, values in (("hasty", hasty), ("idempotent", idempotent)):
        create(clean, topic, 1)
        put(clean, topic, [(None, value, 0) for value in values])
    verdict.says(says, "03_order", clean)


def test_order_right(clean: Cluster, verdict: Verdict) -> None:
    for topic, values in (("hasty", "01234512"), ("idempotent", "012345")):
        create(clean, topic, 1)
        put(clean, topic, [(None, value, 0) for value in values])
    verdict.passes("03_order", clean)
