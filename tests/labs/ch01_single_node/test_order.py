"""Order by partition and by key: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkalab import Cluster
from support import Verdict, create, put, send

pytestmark = pytest.mark.cluster

LAB = "01_order"
SEVEN = [f"This is message {n}" for n in (1, 2, 3)] + [f"Message {n}" for n in (4, 5, 6, 7)]
STEPS = [
    ("ann", "ann opens a cart"),
    ("bob", "bob opens a cart"),
    ("ann", "ann takes a book"),
    ("cleo", "cleo opens a cart"),
    ("bob", "bob takes a lamp"),
    ("ann", "ann pays"),
    ("cleo", "cleo takes a chair"),
    ("bob", "bob leaves"),
    ("cleo", "cleo pays"),
]


def keyed(cluster: Cluster, key: Callable[[int], str | None] = lambda _: "all seven") -> None:
    create(cluster, "keyed", 13, 1)
    send(cluster, "keyed", SEVEN, key=key)


def carts(cluster: Cluster, key: Callable[[int], str | None] = lambda n: STEPS[n][0]) -> None:
    create(cluster, "carts", 13, 1)
    send(cluster, "carts", [step for _, step in STEPS], key=key)


def test_right(single: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, single)
    assert said.count("There is no topic") == 3 and "0 of 12" in said
    create(single, "ordered", 1, 1)
    send(single, "ordered", SEVEN)
    keyed(single)
    carts(single)
    verdict.passes(LAB, single)


def test_right_with_keys_of_ones_own(single: Cluster, verdict: Verdict) -> None:
    create(single, "ordered", 1, 1)
    send(single, "ordered", SEVEN)
    keyed(single, key=lambda _: "7")
    carts(single, key=lambda n: f"customer {'abc'.index(STEPS[n][0][0])}")
    verdict.passes(LAB, single)


def ordered_with_two_partitions(cluster: Cluster) -> None:
    create(cluster, "ordered", 2, 1)


def ordered_backwards(cluster: Cluster) -> None:
    create(cluster, "ordered", 1, 1)
    send(cluster, "ordered", SEVEN[::-1])


def keyed_without_key(cluster: Cluster) -> None:
    create(cluster, "keyed", 13, 1)
    put(cluster, "keyed", [(None, value, 3) for value in SEVEN])


def keyed_with_one_partition(cluster: Cluster) -> None:
    create(cluster, "keyed", 1, 1)


def carts_in_one_partition(cluster: Cluster) -> None:
    create(cluster, "carts", 13, 1)
    put(cluster, "carts", [(key, step, 0) for key, step in STEPS])


def carts_backwards(cluster: Cluster) -> None:
    create(cluster, "carts", 13, 1)
    send(cluster, "carts", [step for _, step in STEPS[::-1]], key=lambda n: STEPS[::-1][n][0])


@pytest.mark.parametrize(
    ("build", "sentences"),
    [
        (ordered_with_two_partitions, ["ordered has 2 partitions"]),
        (ordered_backwards, ["ordered has them in another order: 'Message 7' comes first"]),
        (keyed_without_key, ["Some have no key"]),
        (lambda c: keyed(c, key=lambda n: f"key {n}"), ["They have 7 different keys", "keyed has them in several partitions"]),
        (keyed_with_one_partition, ["keyed has 1 partition"]),
        (lambda c: carts(c, key=lambda _: None), ["has no key"]),
        (lambda c: carts(c, key=lambda _: "shop"), ["have the same key 'shop'", "All steps are in one partition"]),
        (
            lambda c: carts(c, key=lambda n: STEPS[n][1]),
            ["The steps of ann have 3 different keys", "in several partitions"],
        ),
        (carts_in_one_partition, ["All steps are in one partition"]),
        (carts_backwards, ["The steps of ann are in another order: 'ann pays' comes first"]),
    ],
    ids=[
        "ordered_with_two_partitions",
        "ordered_backwards",
        "keyed_without_key",
        "keyed_with_a_key_each",
        "keyed_with_one_partition",
        "carts_without_keys",
        "carts_with_one_key",
        "carts_with_a_key_per_step",
        "carts_in_one_partition",
        "carts_backwards",
    ],
)
def test_wrong(single: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentences: list[str]) -> None:
    build(single)
    _, said = verdict(LAB, single)
    for sentence in sentences:
        assert sentence in said, said
