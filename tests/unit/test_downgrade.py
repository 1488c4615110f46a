"""An older Kafka version against the levels that a cluster has finalized."""

from __future__ import annotations

import pytest

from kafkalab.cluster import Features, downgrade
from kafkalab.cluster.downgrade import is_older, require_readable
from kafkalab.errors import DowngradeRefused

LEVELS = {"4.2.1": 29, "4.3.1": 30}


@pytest.fixture(autouse=True)
def _levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downgrade, "highest_metadata_version", LEVELS.get)


def finalized(*levels: int) -> dict[int, Features]:
    return {broker: Features({}, {"metadata.version": level}) for broker, level in enumerate(levels)}


def test_versions_are_compared_as_numbers() -> None:
    assert is_older("4.2.1", "4.3.0") and is_older("4.9.0", "4.10.0")
    assert not is_older("4.3.1", "4.3.1") and not is_older("5.0.0", "4.3.1")


@pytest.mark.parametrize("levels", [(30,), (29, 30, 30)])
def test_a_level_that_is_too_high(levels: tuple[int, ...]) -> None:
    """A broker that lags behind may still report the lower level."""
    with pytest.raises(DowngradeRefused, match=r"(?s)Broker 2 .* Kafka 4\.2\.1.*level 30 of metadata\.version.*up to level 29"):
        require_readable("broker 2", "4.2.1", finalized(*levels))


@pytest.mark.parametrize(
    ("version", "levels"),
    [
        ("4.2.1", (29, 29)),
        ("4.1.9", (30,)),  # nobody knows what this version supports
        ("4.2.1", ()),  # nobody answers, so Kafka itself decides
    ],
)
def test_what_may_work_is_tried(version: str, levels: tuple[int, ...]) -> None:
    require_readable("broker 2", version, finalized(*levels))
