"""A partitioner for important stocks: each wrong one gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer, murmur2
from partitioner import ImportantStocks

from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "03_partitioner"
STOCKS = ["IBM", "SUN", "GOOG", "INEL", "UBER", "ABC", "XYZ", "DEF", "AAA", "BBB", "CCC", "DDD", "EEE", "FFF"]


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
    passed, said = verdict(LAB, clean, partitioner=None)
    assert not passed and "stock-prices is empty" in said and "`partitioner` is still None" in said
    assert said.count("Not looked at yet") == 3


def test_partitioner_right(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    for topic in ("stock-prices", "single-copy"):
        put(clean, topic, [(name, price(name), right_place(name)) for name in STOCKS])
    verdict.passes(LAB, clean, partitioner=ImportantStocks)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (by_hash_alone, "Which is the last one of stock-prices?"),
        (others_everywhere, "SUN is in partition 4 with the important ones"),
        (others_on_one, "What should decide which one a stock goes to?"),
        (one_too_few, "is important and has records in partition 3"),
    ],
)
def test_partitioner_wrong_places(clean: Cluster, verdict: Verdict, place: Callable[[str], int], says: str) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "stock-prices", [(name, price(name), place(name)) for name in STOCKS])
    verdict.says(says, LAB, clean)


def test_partitioner_that_counts_what_is_available(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "single-copy", [(name, price(name), right_place(name, 4)) for name in STOCKS])
    verdict.says("that aren't available", LAB, clean)


def test_partitioner_that_changes_its_mind(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "stock-prices", [("SUN", price("SUN"), p) for p in (0, 1)])
    verdict.says("stock-prices has no price of IBM", LAB, clean)
    put(clean, "stock-prices", [(name, price(name), right_place(name)) for name in STOCKS if name != "SUN"])
    verdict.says("Records of SUN are in partitions 0 and 1", LAB, clean)


def test_partitioner_that_refuses_nothing_or_trips(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    verdict.says("It accepts no important stock at all", LAB, clean, partitioner=AcceptsAll)
    verdict.says("it raises ZeroDivisionError", LAB, clean, partitioner=trips)
    verdict.says("should be your class ImportantStocks, not the result of calling it (str)", LAB, clean, partitioner="IBM,UBER")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (ByPythonsHash, "It chooses by Python's hash()"),
        (ByPythonsHashOfBytes, "It chooses by Python's hash()"),
        (InOrderOfAppearance, "What else than its name does the choice depend on?"),
        (AcceptsAll, "it raises AttributeError"),
    ],
)
def test_partitioner_that_another_process_would_not_agree_with(
    clean: Cluster, verdict: Verdict, wrong: type, says: str
) -> None:
    topics_of_the_partitioner(clean)
    verdict.says(says, LAB, clean, partitioner=wrong)
