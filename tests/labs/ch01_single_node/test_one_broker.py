"""The only broker lost: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Producer

from kafkalab import Cluster
from kafkalab.cluster import Fault
from support import PATIENCE, Verdict, create

pytestmark = pytest.mark.cluster

LAB, TOPIC = "01_one_broker", "atu"
GIVEN_UP = "_MSG_TIMED_OUT"


def test_right_and_still_down(single: Cluster, verdict: Verdict) -> None:
    """A learner's way through the lab."""
    reports: dict[str, str] = {}

    def report(error: object, record: object) -> None:
        reports[record.value().decode()] = error.name() if error else "delivered"  # type: ignore[attr-defined]

    def hand_over(producer: Producer, *values: str) -> None:
        for value in values:
            producer.produce(TOPIC, value, on_delivery=report)

    impatient = Producer(single.client_config(**{"delivery.timeout.ms": 1000}))
    patient = Producer(single.client_config(**{"delivery.timeout.ms": 60_000, "reconnect.backoff.max.ms": 300}))
    _, said = verdict(LAB, single, error=None)
    assert "The broker wasn't killed yet" in said and "0 of 6" in said

    create(single, TOPIC, 1, 1)
    hand_over(patient, "one", "two", "three")
    patient.flush()
    single.kill(0)
    hand_over(patient, "waiting")
    hand_over(impatient, "lost")
    impatient.flush()
    _, said = verdict(LAB, single, error=reports["lost"])
    assert "hasn't come back" in said and said.count("Not looked at yet") == 5
    single.restart(0)
    patient.flush()
    hand_over(patient, "four")
    patient.flush()

    verdict.passes(LAB, single, error=reports["lost"])
    verdict.passes(LAB, single, error=KafkaError(KafkaError._MSG_TIMED_OUT))
    verdict.says("`error` is still None", LAB, single, error=None)
    verdict.says("The error isn't 'NOT_ENOUGH_REPLICAS'", LAB, single, error="NOT_ENOUGH_REPLICAS")


# Wrong ways are told by what is in the topic, when it was created, and which faults there were: no broker has to die for them.
SENT, KILLED, DOWN, BACK, AFTER = (-50, -40, -30, -20, -10)
OUTAGE = [("kill", KILLED), ("restart", BACK)]
RIGHT = {"one": SENT, "two": SENT, "three": SENT, "waiting": DOWN, "four": AFTER}


def remember(cluster: Cluster, sent: dict[str, int], faults: list[tuple[str, int]]) -> None:
    """The topic with values, and faults, of so many seconds ago."""
    now = time.time()
    create(cluster, TOPIC, 1, 1)
    producer = Producer(cluster.client_config())
    for value, ago in sent.items():
        producer.produce(TOPIC, value, timestamp=int((now + ago) * 1000))
    assert producer.flush(PATIENCE) == 0
    cluster.nodes.faults.extend(Fault(now + ago, verb, 0) for verb, ago in faults)


@pytest.mark.parametrize(
    ("sent", "faults", "sentence"),
    [
        (RIGHT, [], "The broker wasn't killed yet"),
        (RIGHT, [("stop", KILLED), ("restart", BACK)], "The broker was shut down"),
        (RIGHT, [("pause", KILLED), ("resume", BACK)], "The broker was paused"),
        ({**RIGHT, "waiting": AFTER}, OUTAGE, "You gave 'waiting' to the producer after the broker was back"),
        ({**RIGHT, "waiting": SENT}, OUTAGE, "You sent 'waiting' while the broker was still up"),
        ({v: at for v, at in RIGHT.items() if v != "waiting"}, OUTAGE, "'waiting' isn't in atu"),
        ({**RIGHT, "lost": DOWN}, OUTAGE, "'lost' is in atu"),
        ({"three": SENT, "one": SENT, "two": SENT}, OUTAGE, "atu holds three, one, two, not one, two, three"),
        ({"one": SENT, "two": SENT}, OUTAGE, "'three' isn't in atu"),
        ({**RIGHT, "three": AFTER}, OUTAGE, "You sent 'three' after you had killed the broker"),
        ({v: at for v, at in RIGHT.items() if v != "four"}, OUTAGE, "'four' isn't in atu"),
        ({**RIGHT, "four": DOWN}, OUTAGE, "You sent 'four' before the broker was back"),
    ],
    ids=[
        "never_killed",
        "shut_down",
        "only_paused",
        "waiting_too_late",
        "waiting_too_early",
        "waiting_given_up",
        "lost_was_delivered",
        "another_order",
        "three_forgotten",
        "three_too_late",
        "four_forgotten",
        "four_too_early",
    ],
)
def test_wrong(single: Cluster, verdict: Verdict, sent: dict[str, int], faults: list[tuple[str, int]], sentence: str) -> None:
    remember(single, sent, faults)
    verdict.says(sentence, LAB, single, error=GIVEN_UP)


def test_two_partitions(single: Cluster, verdict: Verdict) -> None:
    create(single, TOPIC, 2, 1)
    single.nodes.faults.extend(Fault(time.time(), verb, 0) for verb, _ in OUTAGE)
    verdict.says("atu has 2 partitions", LAB, single, error=GIVEN_UP)
