"""Passing on what is dangerous: each wrong answer gets its sentence, and right ones pass, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from confluent_kafka import Producer

from kafkacourse.datasets import TruckEvent, truck_events
from kafkalab import Cluster, StreamsApp, wait_until
from kafkalab.checks import CheckContext
from support import PATIENCE, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "10_dangerous_driving"
SOURCE, SINK = "truck_position", "dangerous_driving"
DANGEROUS = [event for event in truck_events() if event.event != "Normal"]


def drive(cluster: Cluster) -> None:
    put(cluster, SOURCE, [(str(event.driver), event.csv(), -1) for event in truck_events()])


def pass_on(cluster: Cluster, events: Iterable[TruckEvent], key: Callable[[TruckEvent], str] = lambda e: str(e.driver)) -> None:
    """As a life of an application does that has the default guarantee."""
    put(cluster, SINK, [(key(event), event.csv(), -1) for event in events], enable_idempotence=True)


def commit(cluster: Cluster, life: str, events: Iterable[TruckEvent], aborted: Iterable[TruckEvent] = ()) -> None:
    """As a life of one does that works exactly once; it's killed in a transaction, which is then aborted."""
    producer = Producer(cluster.client_config(transactional_id=life))
    producer.init_transactions(60)
    for batch, end in ((events, producer.commit_transaction), (aborted, producer.abort_transaction)):
        producer.begin_transaction()
        for event in batch:
            producer.produce(SINK, event.csv(), key=str(event.driver))
        assert producer.flush(PATIENCE) == 0
        end()


@pytest.fixture
def driven(clean: Cluster) -> Cluster:
    """The trucks drove twice, and nobody passed anything on."""
    for topic in (SOURCE, SINK):
        create(clean, topic, 2, 1)
    drive(clean)
    drive(clean)
    return clean


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'truck_position' yet" in said and "0 of 6" in said
    create(clean, SOURCE, 2, 1)
    create(clean, SINK, 2, 1)
    drive(clean)
    verdict.says("truck_position was given 120 events, not 240", LAB, clean)
    verdict.says("The topic dangerous_driving is empty", LAB, clean)


def test_normal_events_are_passed_on(driven: Cluster, verdict: Verdict) -> None:
    pass_on(driven, truck_events())
    verdict.says("dangerous_driving holds a Normal event: '1506975526000,18,28", LAB, driven)


def test_one_kind_is_left_out(driven: Cluster, verdict: Verdict) -> None:
    for _ in range(2):
        pass_on(driven, (event for event in DANGEROUS if event.event != "Lane Departure"))
    verdict.says("dangerous_driving lacks 20 of 86 dangerous events", LAB, driven)


def test_the_key_is_lost_or_the_value_changed(driven: Cluster, verdict: Verdict) -> None:
    pass_on(driven, DANGEROUS, key=lambda event: event.event)
    verdict.says("Which step changed the key?", LAB, driven)
    put(driven, SINK, [("11", "Overspeed", -1)])
    verdict.says("dangerous_driving holds 'Overspeed', which no truck sent", LAB, driven)


def test_some_come_out_again_after_a_kill(driven: Cluster, verdict: Verdict) -> None:
    pass_on(driven, [*DANGEROUS, *DANGEROUS, DANGEROUS[7]])
    verdict.says("3 times, and was sent 2 times. What does an application do again after a kill", LAB, driven)


def test_the_application_has_the_default_guarantee(driven: Cluster, verdict: Verdict) -> None:
    pass_on(driven, DANGEROUS)
    pass_on(driven, DANGEROUS)
    verdict.says("dangerous_driving has no duplicates, but some of its records belong to no transaction", LAB, driven)


def test_the_application_was_never_killed(driven: Cluster, verdict: Verdict) -> None:
    commit(driven, "the only life", [*DANGEROUS, *DANGEROUS])
    verdict.says("Everything in dangerous_driving comes from one producer", LAB, driven)


def test_any_client_will_do_in_any_order(driven: Cluster, verdict: Verdict) -> None:
    commit(driven, "first life", reversed(DANGEROUS), aborted=DANGEROUS[:9])
    commit(driven, "second life", DANGEROUS)
    verdict.passes(LAB, driven)


def overspeed_and_others(builder: Any) -> None:
    """Another way than the solution's: branches, merged again."""
    events = builder.stream("truck_position")
    fast = events.filter(lambda driver, event: ",Overspeed," in event)
    fast.merge(events.filterNot(lambda driver, event: ",Overspeed," in event or ",Normal," in event)).to("dangerous_driving")


def test_an_application_with_other_steps(driven: Cluster, verdict: Verdict) -> None:
    settings = {"processing_guarantee": "exactly_once_v2", "transaction_timeout_ms": 3000}
    with StreamsApp(driven, overspeed_and_others, **settings) as app:
        wait_until(lambda: len(CheckContext(driven).values(SINK)) == 86, PATIENCE, "86 events")
        verdict.says("Everything in dangerous_driving comes from one producer", LAB, driven)
        app.kill()
        drive(driven)
        app.start()
        wait_until(lambda: len(CheckContext(driven).values(SINK)) == 129, PATIENCE, "129 events", interval=0.5)
        verdict.passes(LAB, driven)
