"""Groups and the ends of logs, as brokers report them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kafkalab.cluster import groups
from kafkalab.cluster.groups import GroupReader, Reading
from kafkalab.cluster.view import GroupView, PartitionView, ShareGroupView

BROKERS = {0: "broker 0", 1: "broker 1"}
LED = [PartitionView("t", number, number % 2, 0, (0, 1), (0, 1)) for number in range(4)]
INTERNAL = PartitionView("__consumer_offsets", 0, 0, 0, (0,), (0,))


class Brokers:
    """What each broker knows, by its address, and what it's asked for."""

    def __init__(self) -> None:
        self.committed: Mapping[tuple[str, int], int] = {}
        self.unknown: set[tuple[str, int]] = set()
        self.hanging: set[str] = set()
        self.shared: dict[str, list[str]] = {}  # share groups that it coordinates
        self.old: set[str] = set()  # those that know no request for them
        self.asked: list[tuple[str, int]] = []

    def coordinated_by(self, address: str) -> dict[str, list[str]]:
        if address in self.hanging:
            raise TimeoutError
        groups = ["g"] if address == "broker 0" and self.committed else []
        return {"classic": groups, "consumer": [], "share": self.shared.get(address, [])}

    def described(self, address: str, ids: dict[str, list[str]]) -> dict[str, GroupView]:
        return {id_: GroupView(id_, "Empty", ()) for id_ in ids["classic"]}

    def share_groups(self, ids: list[str], address: str) -> dict[str, ShareGroupView]:
        if address in self.old:
            raise ConnectionError
        return {id_: ShareGroupView(id_, "Empty", ()) for id_ in ids}

    def ends(self, address: str, led: list[PartitionView]) -> dict[tuple[str, int], int]:
        if address in self.hanging:
            raise TimeoutError
        places = [(p.topic, p.partition) for p in led]
        self.asked += places
        return {place: 10 for place in places if place not in self.unknown}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(groups, "_coordinated_by", made.coordinated_by)
    monkeypatch.setattr(groups, "_described", made.described)
    monkeypatch.setattr(groups, "coordinated_share_groups", made.share_groups)
    monkeypatch.setattr(groups, "_committed", lambda _, coordinated: dict.fromkeys(coordinated, made.committed))
    monkeypatch.setattr(groups, "_ends", made.ends)
    return made


def reader() -> GroupReader:
    as_it_is: Callable[[str], Any] = str
    return GroupReader(as_it_is)


def test_leaders_report_the_ends_of_their_logs_even_if_no_group_reads_them(brokers: Brokers) -> None:
    told = reader().read(BROKERS, [*LED, INTERNAL], {INTERNAL.topic})
    assert told == Reading(ends={("t", number): 10 for number in range(4)})


def test_an_internal_topic_counts_once_a_group_reads_it(brokers: Brokers) -> None:
    brokers.committed = {(INTERNAL.topic, 0): 3}
    told = reader().read(BROKERS, [*LED, INTERNAL], {INTERNAL.topic})
    assert told.groups["g"].lag == {(INTERNAL.topic, 0): 7} and told.ends[INTERNAL.topic, 0] == 10


def test_a_missing_end_matters_only_to_a_lag(brokers: Brokers) -> None:
    brokers.unknown = {("t", 1)}
    assert reader().read(BROKERS, LED).silent == frozenset()
    brokers.committed = {("t", 1): 3}
    told = reader().read(BROKERS, LED)
    assert not told.groups["g"].lag and told.silent == {1}


def test_a_broker_that_hangs_is_not_asked_again_for_ends_that_no_lag_needs(brokers: Brokers) -> None:
    brokers.hanging = {"broker 1"}
    told = reader().read(BROKERS, LED)
    assert told.ends.keys() == {("t", 0), ("t", 2)} and told.silent == {1}


def test_an_old_broker_reports_all_but_its_share_groups(brokers: Brokers) -> None:
    brokers.committed = {("t", 1): 3}
    brokers.shared = {"broker 0": ["s"], "broker 1": ["r"]}
    brokers.old = {"broker 0"}
    told = reader().read(BROKERS, LED)
    assert [*told.groups] == ["g"] and [*told.share_groups] == ["r"] and not told.silent


def test_of_very_many_partitions_only_those_that_a_lag_needs_are_asked_for(brokers: Brokers) -> None:
    brokers.committed = {("t", 5): 3}
    many = [PartitionView("t", number, 0, 0, (0,), (0,)) for number in range(groups._MOST_ENDS + 1)]
    reader().read(BROKERS, many)
    assert brokers.asked == [("t", 5)]
