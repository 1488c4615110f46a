"""A poll loop, groups and batches: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest

from kafkalab import Cluster
from support import Place, Verdict, commit, create, members, put

pytestmark = pytest.mark.cluster

TOPIC, GROUP = "my-example-topic", "KafkaExampleConsumer"


def greet(cluster: Cluster, count: int, partitions: int = 13) -> list[Place]:
    """Send greetings, in turn to all partitions."""
    create(cluster, TOPIC, partitions)
    return put(cluster, TOPIC, [(n.to_bytes(8, "big"), f"Hello Mom {n}", n % partitions) for n in range(count)])


# -- 04_poll_loop ---------------------------------------------------------------------------------------------------


def never_committed(cluster: Cluster) -> list[Place]:
    places = greet(cluster, 5)
    commit(cluster, GROUP, TOPIC, {12: 0})
    return places


def committed_the_last_one_read(cluster: Cluster) -> list[Place]:
    places = greet(cluster, 5)
    commit(cluster, GROUP, TOPIC, dict.fromkeys(range(5), 0))
    return places


def began_with_the_latest(cluster: Cluster) -> list[Place]:
    places = greet(cluster, 5)
    commit(cluster, GROUP, TOPIC)
    return places[3:]


def kept_nothing(cluster: Cluster) -> list[Place]:
    greet(cluster, 5)
    commit(cluster, GROUP, TOPIC)
    return []


def read_twice(cluster: Cluster) -> list[Place]:
    places = greet(cluster, 5)
    commit(cluster, GROUP, TOPIC)
    return [*places, places[0]]


def in_a_topic_of_another_shape(cluster: Cluster) -> list[Place]:
    places = greet(cluster, 5, partitions=3)
    commit(cluster, GROUP, TOPIC)
    return places


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (never_committed, "committed nothing in partition 0"),
        (committed_the_last_one_read, "the last one read, or the next one to read?"),
        (began_with_the_latest, "did not read offset 0 of partition 0 (3 of 5 are missing)"),
        (kept_nothing, "`read` is empty"),
        (read_twice, "more than once (1 duplicates in all)"),
        (in_a_topic_of_another_shape, "It has 3 partitions"),
    ],
)
def test_poll_loop_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], list[Place]], says: str) -> None:
    verdict.says(says, "04_poll_loop", clean, read=wrong(clean))


def test_poll_loop(clean: Cluster, verdict: Verdict) -> None:
    verdict.says("There is no topic", "04_poll_loop", clean, read=[])
    places = greet(clean, 5)
    commit(clean, GROUP, TOPIC)
    verdict.passes("04_poll_loop", clean, read=places)
    verdict.passes("04_poll_loop", clean, read=numpy.array(places))
    put(clean, TOPIC, [("12345678", "Hello Mom 12345678", 0)])
    verdict.says("isn't a greeting with its own key as a long", "04_poll_loop", clean, read=places)


# -- 04_same_group, 04_different_groups -----------------------------------------------------------------------------


def test_same_group_before_anything_of_it_was_sent(clean: Cluster, verdict: Verdict) -> None:
    """What the group committed in part 1 says nothing about part 2."""
    greet(clean, 5)
    commit(clean, GROUP, TOPIC)
    passed, said = verdict("04_same_group", clean, read={})
    assert not passed and "0 of 4" in said, said


def test_same_group(clean: Cluster, verdict: Verdict) -> None:
    places = greet(clean, 25)
    commit(clean, GROUP, TOPIC)
    shares = {"a": range(5), "b": range(5, 9), "c": range(9, 13)}
    read = {name: [place for place in places if place[0] in share] for name, share in shares.items()}
    with members(clean, TOPIC, GROUP, 3):
        verdict.passes("04_same_group", clean, read=read)
        for says, wrong in {
            "not the 25 that you sent. Did this group commit": {**read, "c": [*read["c"], *[(p, 7) for p in range(5)]]},
            "Did you wait for all of them?": {**read, "c": []},
            "Are all three in the same group?": {**read, "c": read["a"][: len(read["c"])]},
            "a and b both read from partition": {**read, "a": read["a"][1:], "b": [*read["b"], read["a"][0]]},
        }.items():
            verdict.says(says, "04_same_group", clean, read=wrong)
    with members(clean, TOPIC, GROUP, 2):
        verdict.says("has 2 members, not 3", "04_same_group", clean, read=read)


def test_different_groups(clean: Cluster, verdict: Verdict) -> None:
    places = greet(clean, 35)
    names = [f"{GROUP}-{n}" for n in range(3)]
    for name in names[:2]:
        commit(clean, name, TOPIC)
    read = dict.fromkeys(names, places)
    verdict.says("There are 2 groups with names that begin with", "04_different_groups", clean, read=read)
    commit(clean, names[2], TOPIC)
    verdict.passes("04_different_groups", clean, read=read)
    verdict.says("(30 of 35 are missing)", "04_different_groups", clean, read={**read, names[1]: places[30:]})
    verdict.says("the records of 1 group, not of 3", "04_different_groups", clean, read={names[0]: places})


# -- 04_batch_size --------------------------------------------------------------------------------------------------


def test_batch_size(clean: Cluster, verdict: Verdict) -> None:
    places = greet(clean, 535)[30:]
    fives = [places[n : n + 5] for n in range(0, 405, 5)]
    right = {5: fives, 500: [places[405:]]}
    commit(clean, GROUP, TOPIC)
    with members(clean, TOPIC, GROUP, 1):
        verdict.passes("04_batch_size", clean, polls=right)
        for says, wrong in {
            "One call returned 6 records": {5: [places[:6], *fives], 500: right[500]},
            "no call returned more than 5": {5: fives, 500: [places[n : n + 5] for n in range(405, 505, 5)]},
            "No batch holds records of two partitions": {5: fives, 500: [[p for p in places if p[0] == 3]]},
            "In this part 495 records were read": {5: fives[2:], 500: right[500]},
            "5 duplicates. Did a member leave": {5: [fives[0], *fives], 500: right[500]},
            "No batch of at most 500": {5: fives, 500: []},
        }.items():
            verdict.says(says, "04_batch_size", clean, polls=wrong)
    verdict.says("has 0 members, not 1", "04_batch_size", clean, polls=right)


def test_batch_size_a_second_time(clean: Cluster, verdict: Verdict) -> None:
    """An earlier run of this part has read the five that part 3 left, and sent 500 more."""
    places = greet(clean, 1035)[535:]
    polls = {5: [places[n : n + 5] for n in range(0, 400, 5)], 500: [places[400:]]}
    commit(clean, GROUP, TOPIC)
    with members(clean, TOPIC, GROUP, 1):
        verdict.passes("04_batch_size", clean, polls=polls)
