"""One broker dead, then two: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from kafkalab import Cluster
from support import Told, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "03_retries"
TWO_DEAD = (("kill", 0), ("kill", 1), ("restart", 0), ("restart", 1))
ALL = range(1, 61)
GAP = [n for n in ALL if not 20 <= n < 40]
AGAIN = [*range(1, 31), *range(25, 61)]
SWAPPED = [*range(1, 31), *range(37, 43), *range(31, 37), *range(43, 61)]

Numbers = Sequence[int]
Ledgers = dict[str, SimpleNamespace]
IN_FLIGHT, TIME = "max.in.flight.requests.per.connection", "delivery.timeout.ms"


def ledger(failed: int = 0, **settings: object) -> SimpleNamespace:
    """A producer that sent all, gave up so many, and was given these settings."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return SimpleNamespace(entries=[], sent=len(ALL), failed=failed, settings={IN_FLIGHT: 1, **given})


RIGHT = {
    "three-tries": ledger(failed=20, retries=3),
    "patient": ledger(delivery_timeout_ms=60_000),
    "idempotent": ledger(delivery_timeout_ms=60_000, enable_idempotence=True),
}


def sent(cluster: Cluster, three_tries: Numbers = GAP, patient: Numbers = AGAIN, idempotent: Numbers = ALL) -> Ledgers:
    """Topics with these numbers, six keys in turn, and the ledgers of producers with the settings asked for."""
    for topic, numbers in (("three-tries", three_tries), ("patient", patient), ("idempotent", idempotent)):
        create(cluster, topic, 3)
        put(cluster, topic, [(f"key {n % 6}", f"message {n}", n % 3) for n in numbers])
    return RIGHT | {"three-tries": ledger(failed=60 - len(set(three_tries)), retries=3)}


JUDGED = {"three-tries": (20, 0, 0), "patient": (0, 6, 0), "idempotent": (0, 0, 0)}


def test_retries_untouched(clean: Cluster, verdict: Verdict) -> None:
    passed, said = verdict(LAB, Told(clean), ledgers={}, judged={})
    assert not passed and "0 of 6" in said
    assert "`ledgers` is empty" in said and "At most no broker was down at a time" in said


def test_retries_right_and_misjudged(clean: Cluster, verdict: Verdict) -> None:
    ledgers = sent(clean)
    verdict.passes(LAB, Told(clean, *TWO_DEAD), ledgers=ledgers, judged=JUDGED)
    for says, wrong in (
        ("`judged` has no 'patient'", {"three-tries": (20, 0, 0)}),
        ("a tuple of 3, not of 2", {**JUDGED, "patient": (0, 0)}),
        ("has 0 missing. That isn't what the topic shows. Compare what was sent", {**JUDGED, "three-tries": (0, 0, 0)}),
        ("has 0 duplicates. That isn't what the topic shows. How many records", {**JUDGED, "patient": (0, 0, 0)}),
        ("has 6 reordered. That isn't what the topic shows. Take the first time", {**JUDGED, "patient": (0, 6, 6)}),
    ):
        verdict.says(says, LAB, Told(clean, *TWO_DEAD), ledgers=ledgers, judged=wrong)
    as_many = RIGHT["patient"].settings | {"retries": 2_147_483_647}
    patient = {"patient": SimpleNamespace(**{**vars(RIGHT["patient"]), "settings": as_many})}
    verdict.passes(LAB, Told(clean, *TWO_DEAD), ledgers=ledgers | patient, judged=JUDGED)
    one_by_one = Told(clean, ("kill", 0), ("restart", 0), ("kill", 1), ("restart", 1))
    verdict.says("At most one broker was down at a time", LAB, one_by_one, ledgers=ledgers, judged=JUDGED)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"patient": GAP}, "20 of patient are missing. What limits its producer's tries"),
        ({"idempotent": GAP}, "20 of idempotent are missing"),
        ({"idempotent": SWAPPED}, "idempotent is out of order. How does the broker"),
        ({"idempotent": AGAIN}, "6 of idempotent are there twice. How does the broker"),
        ({"three_tries": ALL}, "The producer of three-tries gave nothing up"),
    ],
)
def test_retries_with_wrong_settings(clean: Cluster, verdict: Verdict, numbers: dict, says: str) -> None:
    ledgers = sent(clean, **numbers)
    verdict.says(says, LAB, Told(clean, *TWO_DEAD), ledgers=ledgers, judged=JUDGED)


@pytest.mark.parametrize(
    ("topic", "settings", "says"),
    [
        ("three-tries", {}, "The producer of three-tries has no max.in.flight.requests.per.connection."),
        ("three-tries", {IN_FLIGHT: 1, "retries": 30}, "The producer of three-tries has retries=30."),
        ("patient", {IN_FLIGHT: 5, TIME: 60_000}, "The producer of patient has max.in.flight.requests.per.connection=5."),
        ("patient", {IN_FLIGHT: 1, TIME: 60_000, "retries": 3}, "The producer of patient has retries, too."),
        ("patient", {IN_FLIGHT: 1, TIME: 60_000, "enable.idempotence": True}, "of patient has enable.idempotence, too."),
        ("idempotent", {IN_FLIGHT: 1, TIME: 60_000}, "The producer of idempotent has no enable.idempotence."),
    ],
)
def test_retries_with_other_settings(
    clean: Cluster, verdict: Verdict, topic: str, settings: dict[str, object], says: str
) -> None:
    ledgers = RIGHT | {topic: SimpleNamespace(entries=[], sent=60, failed=0, settings=settings)}
    verdict.says(says, LAB, Told(clean, *TWO_DEAD), ledgers=ledgers, judged=JUDGED)
