"""The labs of chapter 03 on ledgers and retries: each wrong answer is told apart from the right one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace

import pytest

from kafkalab import Cluster
from kafkalab.cluster import Fault

from .support import Verdict, create, put

pytestmark = pytest.mark.cluster

WAYS = ("acks-0", "acks-1", "acks-all", "idempotent")
TOPICS = [f"{story}-{way}" for story in ("plain", "worst") for way in WAYS]


class After:
    """A cluster as it is after these faults (they are told, not done)."""

    def __init__(self, cluster: Cluster, *faults: tuple[str, int]) -> None:
        self._cluster = cluster
        self.faults = [Fault(float(at), verb, broker) for at, (verb, broker) in enumerate(faults)]

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)


def ledger(numbers: Iterable[int], *, sent: int = 0, failed: int = 0, settings: Mapping[str, object] | None = None) -> SimpleNamespace:
    """A producer that got these acknowledged."""
    entries = [SimpleNamespace(value=f"message {n}") for n in numbers]
    return SimpleNamespace(entries=entries, sent=sent, failed=failed, settings=settings or {})


# -- 03_ledger ------------------------------------------------------------------------------------------------------

PLAIN = (("kill", 0), ("restart", 0))
WORST = (("pause", 1), ("pause", 2), ("kill", 0), ("resume", 2), ("resume", 1), ("restart", 0))
RIGHT = {topic: (0, 0) for topic in TOPICS} | {"worst-acks-0": (20, 0), "worst-acks-1": (20, 0), "worst-acks-all": (0, 30)}


def stories(cluster: Cluster, table: Mapping[str, tuple[int, int]], told: int = 120) -> dict[str, SimpleNamespace]:
    """Topics in which so many are lost and doubled, and the ledgers."""
    for topic, (lost, doubled) in table.items():
        create(cluster, topic, 1)
        put(cluster, topic, [(None, f"message {n}", 0) for n in [*range(lost, told), *range(told - doubled, told)]])
    return {topic: ledger(range(told)) for topic in table}


def test_ledger_untouched(clean: Cluster, verdict: Verdict) -> None:
    passed, said = verdict("03_ledger", clean, ledgers={}, table={})
    assert not passed
    for sentence in ("was killed not yet", "Broker 0 was not killed yet", "Give check() table=…"):
        assert sentence in said, said
    assert "✓" not in said


def test_ledger_right_and_with_other_faults(clean: Cluster, verdict: Verdict) -> None:
    ledgers = stories(clean, RIGHT)
    verdict.passes("03_ledger", After(clean, *PLAIN, *WORST), ledgers=ledgers, table=RIGHT)
    for says, faults in (
        ("was killed once", WORST),
        ("broker 1 was not frozen", (*PLAIN, *PLAIN)),
        ("broker 2 was not frozen", (*PLAIN, ("pause", 1), ("kill", 0), ("resume", 1), ("restart", 0))),
        ("broker 1 was not frozen", (*PLAIN, ("pause", 1), ("resume", 1), ("pause", 2), ("kill", 0), ("resume", 2))),
        ("Which of them should have more when the leader dies?", (*PLAIN, ("pause", 2), ("pause", 1), ("kill", 0))),
    ):
        verdict.says(says, "03_ledger", After(clean, *faults), ledgers=ledgers, table=RIGHT)
    for says, wrong in (
        ("table has no 'plain-acks-1'", {"plain-acks-0": (0, 0)}),
        ("should be two numbers", {**RIGHT, "plain-acks-0": 0}),
        ("Lost is what was acknowledged and is not in the topic", {**RIGHT, "worst-acks-1": (0, 0)}),
        ("Which values are in it more than once?", {**RIGHT, "worst-acks-all": (0, 60)}),
    ):
        verdict.says(says, "03_ledger", After(clean, *PLAIN, *WORST), ledgers=ledgers, table=wrong)


@pytest.mark.parametrize(
    ("differs", "says"),
    [
        ({"worst-acks-1": (0, 0)}, "Was anything acknowledged by the leader alone before it died"),
        ({"worst-acks-all": (0, 0)}, "when broker 2 still copied and broker 1 no more"),
        ({"worst-acks-all": (5, 30)}, "worst-acks-all lost 5"),
        ({"worst-idempotent": (0, 7)}, "Was its ledger started as it was given, with idempotence?"),
    ],
)
def test_ledger_of_another_story(clean: Cluster, verdict: Verdict, differs: dict, says: str) -> None:
    table = {**RIGHT, **differs}
    ledgers = stories(clean, table)
    verdict.says(says, "03_ledger", After(clean, *PLAIN, *WORST), ledgers=ledgers, table=table)


def test_ledger_that_hardly_began(clean: Cluster, verdict: Verdict) -> None:
    ledgers = stories(clean, dict.fromkeys(TOPICS, (0, 0)), told=5)
    table = dict.fromkeys(TOPICS, (0, 0))
    after = After(clean, *PLAIN, *WORST)
    verdict.says("The ledger of plain-acks-0 has 5 lines", "03_ledger", after, ledgers=ledgers, table=table)


# -- 03_retries -----------------------------------------------------------------------------------------------------

TWO_DEAD = (("kill", 0), ("kill", 1), ("restart", 0), ("restart", 1))
ALL = range(1, 61)
GAP = [n for n in ALL if not 20 <= n < 40]
AGAIN = [*range(1, 31), *range(25, 61)]
SWAPPED = [*range(1, 31), *range(37, 43), *range(31, 37), *range(43, 61)]

Numbers = Sequence[int]
Ledgers = dict[str, SimpleNamespace]
IN_FLIGHT, TIME = "max.in.flight.requests.per.connection", "delivery.timeout.ms"


def sent(cluster: Cluster, three_tries: Numbers = GAP, patient: Numbers = AGAIN, idempotent: Numbers = ALL) -> Ledgers:
    """Topics with these numbers, six keys in turn, and the ledgers of producers with the settings asked for."""
    for topic, numbers in (("three-tries", three_tries), ("patient", patient), ("idempotent", idempotent)):
        create(cluster, topic, 3)
        put(cluster, topic, [(f"key {n % 6}", f"message {n}", n % 3) for n in numbers])
    return {
        "three-tries": ledger(three_tries, sent=60, failed=60 - len(set(three_tries)), settings={IN_FLIGHT: 1, "retries": 3}),
        "patient": ledger(ALL, sent=60, settings={IN_FLIGHT: 1, TIME: 60_000}),
        "idempotent": ledger(ALL, sent=60, settings={IN_FLIGHT: 1, TIME: 60_000, "enable.idempotence": True}),
    }


JUDGED = {"three-tries": (20, 0, 0), "patient": (0, 6, 0), "idempotent": (0, 0, 0)}


def test_retries_untouched(clean: Cluster, verdict: Verdict) -> None:
    ledgers = sent(clean, three_tries=ALL, patient=ALL)
    passed, said = verdict("03_retries", clean, ledgers=ledgers, judged={})
    assert not passed
    for sentence in ("At most no broker was down at a time", "three-tries gave nothing up", "Give check() judged=…"):
        assert sentence in said, said


def test_retries_right_and_misjudged(clean: Cluster, verdict: Verdict) -> None:
    ledgers = sent(clean)
    verdict.passes("03_retries", After(clean, *TWO_DEAD), ledgers=ledgers, judged=JUDGED)
    for says, wrong in (
        ("judged['patient'] should be three numbers", {"three-tries": (20, 0, 0)}),
        ("0 missing is not what the topic says. Missing is what was sent", {**JUDGED, "three-tries": (0, 0, 0)}),
        ("0 doubled is not what the topic says. Doubled is how many", {**JUDGED, "patient": (0, 0, 0)}),
        ("6 inverted is not what the topic says. Look at the first time", {**JUDGED, "patient": (0, 6, 6)}),
    ):
        verdict.says(says, "03_retries", After(clean, *TWO_DEAD), ledgers=ledgers, judged=wrong)
    one_by_one = After(clean, ("kill", 0), ("restart", 0), ("kill", 1), ("restart", 1))
    verdict.says("At most one broker was down at a time", "03_retries", one_by_one, ledgers=ledgers, judged=JUDGED)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"patient": GAP}, "20 of patient are missing. How long may it go on trying"),
        ({"idempotent": GAP}, "20 of idempotent are missing"),
        ({"idempotent": SWAPPED}, "idempotent is out of order. Which setting"),
        ({"idempotent": AGAIN}, "6 of idempotent are there twice. Which setting lets the broker"),
        ({"idempotent": AGAIN}, "And how many requests may be in flight?"),
        ({"three_tries": ALL}, "three-tries gave nothing up"),
    ],
)
def test_retries_with_wrong_settings(clean: Cluster, verdict: Verdict, numbers: dict, says: str) -> None:
    ledgers = sent(clean, **numbers)
    verdict.says(says, "03_retries", After(clean, *TWO_DEAD), ledgers=ledgers, judged=JUDGED)


@pytest.mark.parametrize(
    ("topic", "settings", "says"),
    [
        ("three-tries", {}, "three-tries was not given max.in.flight.requests.per.connection."),
        ("three-tries", {IN_FLIGHT: 1, "retries": 30}, "three-tries was given retries=30."),
        ("patient", {IN_FLIGHT: 5, TIME: 60_000}, "patient was given max.in.flight.requests.per.connection=5."),
        ("patient", {IN_FLIGHT: 1, TIME: 60_000, "retries": 3}, "patient was given retries, too."),
        ("patient", {IN_FLIGHT: 1, TIME: 60_000, "enable.idempotence": True}, "patient was given enable.idempotence, too."),
        ("idempotent", {IN_FLIGHT: 1, TIME: 60_000}, "idempotent was not given enable.idempotence."),
    ],
)
def test_retries_with_other_settings(clean: Cluster, verdict: Verdict, topic: str, settings: dict[str, object], says: str) -> None:
    ledgers = sent(clean)
    ledgers[topic].settings = settings
    verdict.says(says, "03_retries", After(clean, *TWO_DEAD), ledgers=ledgers, judged=JUDGED)
