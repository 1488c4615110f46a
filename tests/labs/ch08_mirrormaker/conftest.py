"""Clusters for the labs on mirroring. The copies are written by hand here; no MirrorMaker runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkalab import Cluster
from mirror_support import Named
from support import BACKEND, empty

SETTINGS = {"auto.create.topics.enable": False}


@pytest.fixture(scope="package")
def _three() -> Iterator[list[Cluster]]:
    """Three clusters of one broker, the same for all modules of the chapter."""
    with (
        Cluster(1, backend=BACKEND, settings=SETTINGS) as a,
        Cluster(1, backend=BACKEND, settings=SETTINGS) as b,
        Cluster(1, backend=BACKEND, settings=SETTINGS) as c,
    ):
        yield [a, b, c]


@pytest.fixture
def named(_three: list[Cluster]) -> Iterator[Named]:
    """Call it with names: so many of the clusters, under these names; they are empty."""
    used: list[Cluster] = []

    def name(*names: str) -> list[Cluster]:
        for cluster, called in zip(_three, names, strict=False):
            cluster.name = called
            used.append(cluster)
        return used

    yield name
    for cluster in used:
        empty(cluster)
