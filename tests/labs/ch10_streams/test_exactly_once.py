"""Records that applications passed on twice: each wrong answer gets its sentence, and right ones pass, whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from kafkacourse.ch10_streams.exactly_once import EXACT, REPEATED, SOURCE
from kafkalab import Cluster, LedgerProducer
from support import PATIENCE, Verdict, create

pytestmark = pytest.mark.cluster

LAB = "10_exactly_once"
TOLLS = 20
RIGHT = {REPEATED: 8, EXACT: 0}


@dataclass
class Lab:
    """What the learner has: a cluster, and a ledger of all tolls."""

    cluster: Cluster
    ledger: LedgerProducer

    def says(self, verdict: Verdict, sentence: str, duplicates: dict[str, int] | None = None) -> None:
        verdict.says(sentence, LAB, self.cluster, ledgers={SOURCE: self.ledger}, duplicates=duplicates or RIGHT)

    def passes(self, verdict: Verdict, duplicates: dict[str, int]) -> None:
        verdict.passes(LAB, self.cluster, ledgers={SOURCE: self.ledger}, duplicates=duplicates)

    def write(self, topic: str, first: int, last: int) -> None:
        """A life of the application that works at least once passes these tolls on."""
        producer = Producer(self.cluster.client_config(enable_idempotence=True))
        self._produce(producer, topic, self._values(first, last))

    def commit(self, first: int, last: int, *, uncommitted: int = 0) -> None:
        """A life of the other one: some records are in a transaction that is aborted."""
        producer = Producer(self.cluster.client_config(transactional_id=f"life from {first}"))
        producer.init_transactions(60)
        producer.begin_transaction()
        self._produce(producer, EXACT, self._values(first, last))
        producer.commit_transaction()
        if uncommitted:
            producer.begin_transaction()
            self._produce(producer, EXACT, self._values(last + 1, last + uncommitted))
            producer.abort_transaction()

    @staticmethod
    def _values(first: int, last: int) -> list[str]:
        return [f"message {number}" for number in range(first, last + 1)]

    @staticmethod
    def _produce(producer: Producer, topic: str, values: Sequence[str]) -> None:
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(PATIENCE) == 0


@pytest.fixture
def lab(clean: Cluster) -> Iterator[Lab]:
    """The tolls were sent, and nobody passed them on."""
    for topic in (SOURCE, REPEATED, EXACT):
        create(clean, topic, 1, 1)
    ledger = LedgerProducer(clean, SOURCE, rate=1000, count=TOLLS)
    ledger.wait_for(TOLLS, PATIENCE)
    ledger.stop()
    yield Lab(clean, ledger)


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean, ledgers={}, duplicates={})
    assert "There is no topic 'tolls' yet" in said and "0 of 5" in said


def test_one_application_never_ran_or_was_not_started_again(lab: Lab, verdict: Verdict) -> None:
    lab.says(verdict, "The topic passed_at_least_once is empty. Is the application that writes it RUNNING?")
    lab.write(REPEATED, 1, TOLLS)
    lab.says(verdict, "Everything in passed_at_least_once comes from one producer")


def test_stopped_in_order_and_not_at_its_end(lab: Lab, verdict: Verdict) -> None:
    lab.write(REPEATED, 1, 8)
    lab.write(REPEATED, 9, TOLLS)
    lab.commit(1, 8)
    lab.commit(9, 15)
    lab.says(verdict, "passed_at_least_once has no duplicate. Was its application killed, or did it stop cleanly?")
    lab.says(verdict, "passed_exactly_once has 5 lost writes, such as 'message 16'")


def test_the_guarantee_is_missing(lab: Lab, verdict: Verdict) -> None:
    for topic in (REPEATED, EXACT):
        lab.write(topic, 1, 8)
    lab.write(EXACT, 9, TOLLS)
    lab.write(REPEATED, 1, TOLLS)
    lab.says(verdict, "passed_exactly_once has no duplicates, but some of its records belong to no transaction: that was luck")
    lab.write(EXACT, 3, 3)
    lab.says(verdict, "passed_exactly_once has 1 duplicate, such as 'message 3'. The record was sent once")


def test_other_counts_and_more_lives(lab: Lab, verdict: Verdict) -> None:
    lab.write(REPEATED, 1, 8)
    lab.write(REPEATED, 1, TOLLS)
    lab.commit(1, 8, uncommitted=6)
    lab.commit(9, TOLLS)
    lab.passes(verdict, RIGHT)
    lab.says(verdict, "`duplicates['passed_at_least_once']` is 28, which doesn't fit", {**RIGHT, REPEATED: 28})
    lab.says(verdict, "`duplicates['passed_exactly_once']` is 6, which doesn't fit", {**RIGHT, EXACT: 6})
    lab.says(verdict, "`duplicates` has no 'passed_exactly_once'", {REPEATED: 8})
    lab.write(REPEATED, 15, TOLLS)  # killed once more
    lab.passes(verdict, {REPEATED: 14, EXACT: 0})
    lab.write(REPEATED, 15, TOLLS)  # three times in the log is still one duplicate
    lab.passes(verdict, {REPEATED: 14, EXACT: 0})
