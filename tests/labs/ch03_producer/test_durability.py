"""Acknowledgements, replicas and order: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkalab import Cluster
from support import Told, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "03_durability"
ALL_IN_SYNC = "03_all_in_sync"
ORDER = "03_order"


def test_durability_untouched(clean: Cluster, verdict: Verdict) -> None:
    passed, said = verdict(LAB, Told(clean), ledgers={}, lost={}, duplicates={})
    assert not passed and "Broker 0 wasn't cut off" in said and "0 of 4" in said


def test_durability_cut_off(breakable: Cluster, verdict: Verdict) -> None:
    nothing: dict[str, dict] = {"ledgers": {}, "lost": {}, "duplicates": {}}
    breakable.isolate(0)
    verdict.says("Which verb undoes that?", LAB, breakable, **nothing)
    breakable.kill(0)
    verdict.says("Broker 0 is dead.", LAB, breakable, **nothing)
    breakable.restart(0)  # connects it again, too
    _, said = verdict(LAB, breakable, **nothing)
    assert "✓ Broker 0 was cut off, and reached again" in said, said


CUT_OFF = (("isolate", 0), ("heal", 0))


def ledger(count: int) -> SimpleNamespace:
    return SimpleNamespace(entries=[SimpleNamespace(value=str(n)) for n in range(count)])


def test_durability_right_and_miscounted(clean: Cluster, verdict: Verdict) -> None:
    names = ("acks-0", "acks-1", "acks-all")
    for name in names:
        create(clean, name, 1)
        put(clean, name, [(None, value, 0) for value in "0112"])
    after = Told(clean, *CUT_OFF)
    right = {"ledgers": {"acks-0": ledger(5), "acks-1": ledger(6), "acks-all": ledger(3)}}
    right |= {"lost": {"acks-0": 2, "acks-1": 3, "acks-all": 0}, "duplicates": dict.fromkeys(names, 1)}
    verdict.passes(LAB, after, **right)
    for says, wrong in (
        ("`lost['acks-0']` is 0", {"lost": dict.fromkeys(names, 0)}),
        ("`lost` has no 'acks-1'", {"lost": {"acks-0": 2}}),
        ("`duplicates['acks-0']` is 2", {"duplicates": dict.fromkeys(names, 2)}),
        ("`duplicates` should be a dictionary, not a whole number", {"duplicates": 3}),
        ("acks-all lacks 2 acknowledged records", {"ledgers": dict.fromkeys(names, ledger(5))}),
        ("acks-0 lost nothing", {"ledgers": dict.fromkeys(names, ledger(3))}),
        ("`ledgers` has no 'acks-1'", {"ledgers": {"acks-0": ledger(5)}}),
        ("should be a LedgerProducer, not list", {"ledgers": {"acks-0": []}}),
    ):
        verdict.says(says, LAB, after, **right | wrong)


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        ({"all": None, 1: None, 0: None}, "It should have the name of the error, or 'acknowledged'"),
        ({"all": "_MSG_TIMED_OUT", 1: "acknowledged", 0: "acknowledged"}, "Does your producer try again?"),
        ({"all": "acknowledged", 1: "acknowledged", 0: "acknowledged"}, "acks=all was acknowledged"),
        ({"all": "NOT_ENOUGH_REPLICAS", 1: "NOT_ENOUGH_REPLICAS", 0: "acknowledged"}, "Did the producer get acks=1?"),
    ],
)
def test_all_in_sync_wrong(clean: Cluster, verdict: Verdict, outcomes: dict, says: str) -> None:
    create(clean, "needs-all-three", 1, min_insync_replicas="3")
    put(clean, "needs-all-three", [(None, "acks=all", 0)])
    passed, said = verdict(ALL_IN_SYNC, Told(clean, ("stop", 2), ("restart", 2)), outcomes=outcomes)
    assert not passed and says in said, said
    assert "'acks=all' is in needs-all-three" in said


def test_all_in_sync_untouched(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "needs-all-three", 1, min_insync_replicas="2")
    passed, said = verdict(ALL_IN_SYNC, Told(clean), outcomes={})
    assert not passed and "0 of 4" in said
    assert "min.insync.replicas=2" in said and "Broker 2 hasn't been down yet" in said


def test_all_in_sync_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, "needs-all-three", 1, min_insync_replicas="3")
    after = Told(clean, ("stop", 2), ("restart", 2))
    right = {"all": "NOT_ENOUGH_REPLICAS", 1: "acknowledged", 0: "acknowledged"}
    put(clean, "needs-all-three", [(None, "acks=1", 0)])
    verdict.says("needs-all-three has no 'acks=0'", ALL_IN_SYNC, after, outcomes=right)
    put(clean, "needs-all-three", [(None, "acks=0", 0)])
    verdict.passes(ALL_IN_SYNC, after, outcomes=right)
    verdict.passes(ALL_IN_SYNC, after, outcomes={str(acks): outcome for acks, outcome in right.items()})


@pytest.mark.parametrize(
    ("hasty", "idempotent", "says"),
    [
        ("012345", "012345", "hasty has no duplicate"),
        ("0112345", "012345", "hasty is in order"),
        ("0123", "012345", "Did you send 0 to 5 with send_five?"),
        ("0123451", "01234512", "Which setting lets the broker recognize"),
        ("0123451", "021345", "with send_five, each once?"),
    ],
)
def test_order_wrong(clean: Cluster, verdict: Verdict, hasty: str, idempotent: str, says: str) -> None:
    for topic, values in (("hasty", hasty), ("idempotent", idempotent)):
        create(clean, topic, 1)
        put(clean, topic, [(None, value, 0) for value in values])
    verdict.says(says, ORDER, clean)


def test_order_right(clean: Cluster, verdict: Verdict) -> None:
    for topic, values in (("hasty", "01234512"), ("idempotent", "012345")):
        create(clean, topic, 1)
        put(clean, topic, [(None, value, 0) for value in values])
    verdict.passes(ORDER, clean)
