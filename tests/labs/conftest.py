"""Fixtures for the tests of labs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalab import Cluster
from support import Verdict, empty, renew


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is solved here is not the learner's progress."""
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "progress"))


@pytest.fixture
def verdict(capsys: pytest.CaptureFixture[str]) -> Verdict:
    """Runs checks."""
    return Verdict(capsys)


@pytest.fixture
def clean(cluster: Cluster) -> Iterator[Cluster]:
    """Three brokers that are up, without topics and groups of earlier tests."""
    yield cluster
    empty(cluster)


@pytest.fixture
def breakable(cluster: Cluster) -> Iterator[Cluster]:
    """The same three brokers, for a test that ends some of them."""
    cluster.nodes.faults.clear()
    yield cluster
    renew(cluster)
