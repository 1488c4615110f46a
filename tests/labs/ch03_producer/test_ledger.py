"""What a dead leader costs: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from kafkalab import Cluster
from support import Told, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "03_ledger"
WAYS = ("acks-0", "acks-1", "acks-all", "idempotent")
TOPICS = [f"{story}-{way}" for story in ("plain", "worst") for way in WAYS]
PLAIN = (("kill", 0), ("restart", 0))
WORST = (("pause", 1), ("pause", 2), ("kill", 0), ("resume", 2), ("resume", 1), ("restart", 0))
RIGHT = dict.fromkeys(TOPICS, (0, 0)) | {"worst-acks-0": (20, 0), "worst-acks-1": (20, 0), "worst-acks-all": (0, 30)}


def ledger(count: int) -> SimpleNamespace:
    """A producer that got so many acknowledged."""
    return SimpleNamespace(entries=[SimpleNamespace(value=f"message {n}") for n in range(count)])


def stories(cluster: Cluster, table: Mapping[str, tuple[int, int]], told: int = 120) -> dict[str, SimpleNamespace]:
    """Topics in which so many are lost and duplicated, and the ledgers."""
    for topic, (lost, duplicates) in table.items():
        create(cluster, topic, 1)
        put(cluster, topic, [(None, f"message {n}", 0) for n in [*range(lost, told), *range(told - duplicates, told)]])
    return {topic: ledger(told) for topic in table}


def test_ledger_untouched(clean: Cluster, verdict: Verdict) -> None:
    passed, said = verdict(LAB, Told(clean), ledgers={}, table={})
    assert not passed and "0 of 5" in said and "was killed 0 times" in said


def test_ledger_right_and_with_other_faults(clean: Cluster, verdict: Verdict) -> None:
    ledgers = stories(clean, RIGHT)
    verdict.passes(LAB, Told(clean, *PLAIN, *WORST), ledgers=ledgers, table=RIGHT)
    for says, faults in (
        ("was killed 1 time", WORST),
        ("Broker 1 wasn't frozen", (*PLAIN, *PLAIN)),
        ("Broker 2 wasn't frozen", (*PLAIN, ("pause", 1), ("kill", 0), ("resume", 1), ("restart", 0))),
        ("Broker 1 wasn't frozen", (*PLAIN, ("pause", 1), ("resume", 1), ("pause", 2), ("kill", 0), ("resume", 2))),
        ("Which of them should have more records when the leader dies?", (*PLAIN, ("pause", 2), ("pause", 1), ("kill", 0))),
    ):
        verdict.says(says, LAB, Told(clean, *faults), ledgers=ledgers, table=RIGHT)
    for says, wrong in (
        ("`table` has no 'plain-acks-1'", {"plain-acks-0": (0, 0)}),
        ("`table['plain-acks-0']` should be a tuple, not a whole number", {**RIGHT, "plain-acks-0": 0}),
        ("`table` says that worst-acks-1 lost 0", {**RIGHT, "worst-acks-1": (0, 0)}),
        ("Which values come more than once in it?", {**RIGHT, "worst-acks-all": (0, 60)}),
    ):
        verdict.says(says, LAB, Told(clean, *PLAIN, *WORST), ledgers=ledgers, table=wrong)


@pytest.mark.parametrize(
    ("differs", "says"),
    [
        ({"worst-acks-1": (0, 0)}, "Did the leader alone acknowledge records before it died"),
        ({"worst-acks-all": (0, 0)}, "when broker 2 still copied and broker 1 didn't"),
        ({"worst-acks-all": (5, 30)}, "worst-acks-all lost 5"),
        ({"worst-idempotent": (0, 7)}, "Did you start its producer as the notebook does?"),
    ],
)
def test_ledger_of_another_story(clean: Cluster, verdict: Verdict, differs: dict, says: str) -> None:
    table = {**RIGHT, **differs}
    ledgers = stories(clean, table)
    verdict.says(says, LAB, Told(clean, *PLAIN, *WORST), ledgers=ledgers, table=table)


def test_ledger_that_hardly_began(clean: Cluster, verdict: Verdict) -> None:
    ledgers = stories(clean, dict.fromkeys(TOPICS, (0, 0)), told=5)
    table = dict.fromkeys(TOPICS, (0, 0))
    after = Told(clean, *PLAIN, *WORST)
    verdict.says("The ledger of plain-acks-0 has 5 records", LAB, after, ledgers=ledgers, table=table)
