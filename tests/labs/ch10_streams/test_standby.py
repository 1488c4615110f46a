"""A store that is lost: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import threading

import pytest

from kafkacourse.ch10_streams.standby import TRUCKS
from kafkalab import Cluster
from kafkalab.checks import CheckContext
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "10_standby"
SOURCE, ALONE, FOLLOWED = "odometers", "alone-latest-changelog", "followed-latest-changelog"
RIGHT = {"without": TRUCKS, "with_standby": 0}


def fill(cluster: Cluster, topic: str, trucks: int = TRUCKS + 1) -> None:
    """As one producer does, so each call is another instance: the one that has the store, until a truck has reported."""
    put(cluster, topic, [(str(number), "1", 0) for number in range(trucks)], linger_ms=100, enable_idempotence=True)


def report(cluster: Cluster, topic: str, trucks: int = 1) -> None:
    """As the instance that took over does: it writes rows of trucks that reported later."""
    rows = [(str(TRUCKS + 1 + number), "1", 0) for number in range(trucks)]
    put(cluster, topic, rows, linger_ms=100, enable_idempotence=True)


@pytest.fixture
def run(clean: Cluster) -> Cluster:
    """As two applications leave it, when one instance of each was killed and the other took over."""
    for topic in (SOURCE, ALONE, FOLLOWED):
        create(clean, topic, 1, 1)
        fill(clean, topic)
        report(clean, topic)
    return clean


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean, without=None, with_standby=None)
    assert "There is no topic 'odometers' yet" in said and "0 of 5" in said


def test_an_application_was_killed_too_soon_or_never_started(clean: Cluster, verdict: Verdict) -> None:
    for topic in (SOURCE, ALONE):
        create(clean, topic, 1, 1)
    fill(clean, SOURCE)
    verdict.says("alone-latest-changelog was given 0 records of 5000. Had alone read everything", LAB, clean, **RIGHT)
    fill(clean, ALONE)
    verdict.says("There is no topic 'followed-latest-changelog' yet", LAB, clean, **RIGHT)


def test_numbers_without_a_kill_or_with_that_of_the_idle_instance(clean: Cluster, verdict: Verdict) -> None:
    for topic in (SOURCE, ALONE, FOLLOWED):
        create(clean, topic, 1, 1)
        fill(clean, topic)
    verdict.says(
        "In alone-latest-changelog, the trucks that reported after the first 5,000 all come from one producer",
        LAB,
        clean,
        **RIGHT,
    )
    report(clean, ALONE)
    verdict.says("In followed-latest-changelog, the trucks that reported after", LAB, clean, **RIGHT)


def test_the_instance_without_the_store_was_killed(clean: Cluster, verdict: Verdict) -> None:
    """The second instance got the task when it joined, and the first one was killed: two producers, but nobody took over."""
    for topic in (SOURCE, ALONE, FOLLOWED):
        create(clean, topic, 1, 1)
        fill(clean, topic, TRUCKS)
        report(clean, topic, 2)
    verdict.says("In alone-latest-changelog, the trucks that reported after", LAB, clean, **RIGHT)


def test_the_wrong_instance_or_no_standby(run: Cluster, verdict: Verdict) -> None:
    verdict.says("Give check() your answer as without=", LAB, run)
    verdict.says(
        "`without` is 0, and the changelog of alone has a record for each of 5000", LAB, run, **{**RIGHT, "without": 0}
    )
    verdict.says("`without` is 10000, and the changelog of alone was given 5002", LAB, run, **{**RIGHT, "without": 10_000})
    verdict.says("Did both instances have the setting", LAB, run, **{**RIGHT, "with_standby": TRUCKS})
    verdict.says("`with_standby` is still None", LAB, run, without=TRUCKS, with_standby=None)


def test_a_few_records_may_be_left_to_read(run: Cluster, verdict: Verdict) -> None:
    verdict.passes(LAB, run, **RIGHT)
    report(run, ALONE, 10)  # of an instance that read some of the input again
    verdict.passes(LAB, run, without=TRUCKS + 11, with_standby=3)


def test_what_the_other_instance_has_not_sent_yet_is_waited_for(clean: Cluster, verdict: Verdict) -> None:
    for topic in (SOURCE, ALONE, FOLLOWED):
        create(clean, topic, 1, 1)
        fill(clean, topic)
    report(clean, SOURCE)
    report(clean, ALONE)
    late = threading.Timer(1.0, report, (clean, FOLLOWED))
    late.start()
    try:
        verdict.passes(LAB, clean, **RIGHT)
        assert CheckContext(clean).given(FOLLOWED) == TRUCKS + 2  # the thread itself may still be closing its producer
    finally:
        late.join()
