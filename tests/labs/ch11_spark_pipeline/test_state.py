"""A state that is bounded: each wrong answer gets its sentence, and right ones pass, whichever operator forgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalab import Cluster
from support import Verdict

pytestmark = pytest.mark.cluster

LAB = "11_state"


def query(*rows: int, repeats: int = 100, late: int = 0, rocks: bool = True, patience: int = 120) -> Any:
    """Stand in for a query whose state had so many rows after each batch."""
    metrics = {"numDroppedDuplicateRows": repeats} | ({"rocksdbGetCount": 1} if rocks else {})
    begin = datetime(2017, 10, 2, 20, tzinfo=UTC)
    batches = [
        {
            "stateOperators": [{"numRowsTotal": total, "numRowsDroppedByWatermark": late, "customMetrics": metrics}],
            "eventTime": {
                "max": (begin + timedelta(minutes=minute)).isoformat(),
                "watermark": (begin + timedelta(minutes=minute - 1, seconds=-patience)).isoformat(),
            },
        }
        for minute, total in enumerate(rows)
    ]
    return SimpleNamespace(recentProgress=batches)


GROWING = range(1000, 11_000, 1000)
FORGETFUL = (1000, 2000, 3000, 4000, 5000, 5000, 5000, 5000, 5000, 5000)


@pytest.fixture
def answers(tmp_path: Path) -> dict[str, Any]:
    """The right answers, with a checkpoint that has changelogs."""
    (tmp_path / "rocksdb/state/0/0").mkdir(parents=True)
    (tmp_path / "rocksdb/state/0/0/1.changelog").touch()
    return {
        "operator": "dedupe",
        "rows": 5000,
        "rocksdb": query(*GROWING[:5]),
        "bounded": query(*FORGETFUL),
        "checkpoints": str(tmp_path),
    }


def test_nothing_was_done(clean: Cluster, tmp_path: Path, verdict: Verdict) -> None:
    nothing = dict.fromkeys(("operator", "rows", "rocksdb", "bounded"))
    _, said = verdict(LAB, clean, **nothing, checkpoints=str(tmp_path))
    assert "`rows` is still None" in said and "`operator` is still None" in said
    assert "`rocksdb` is still None" in said and "`bounded` is still None" in said and "0 of 6" in said


def test_right_answers(clean: Cluster, answers: dict[str, Any], verdict: Verdict) -> None:
    verdict.passes(LAB, clean, **answers)
    # By id and time, a row goes as soon as the watermark passes its event. The state was read after the sixth minute.
    by_time = (1000, 2000, 3000, 3000, 3000, 3000, 3000, 3000, 3000, 3000)
    verdict.passes(LAB, clean, **answers | {"bounded": query(*by_time), "rows": 6000})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rows": 5500}, "`rows` is 5,500. How many rows does the format statestore read"),
        ({"operator": "default"}, "`operator` is 'default'. What does the format state-metadata have"),
        ({"rocksdb": query(*GROWING[:5], rocks=False)}, "The state of the stream rocksdb is in memory. Was the provider set"),
        ({"rocksdb": query(1000)}, "The state of the stream rocksdb has 1,000 rows. It should have one for each of 5,000 ids"),
        ({"rocksdb": "rocksdb"}, "`rocksdb` should be a query, as run() returns it. It's of type str"),
        ({"bounded": query()}, "The stream bounded has reported no batch. Its checkpoint may be at the end already"),
        ({"bounded": SimpleNamespace(recentProgress=[{"stateOperators": []}])}, "bounded has no operator with a state"),
        ({"bounded": query(*GROWING)}, "The state of the stream bounded has 10,000 rows after 10 minutes of events"),
        (
            {"bounded": query(*FORGETFUL, patience=30)},
            "bounded is 30 s behind the latest event. A repeat may be 2 minutes older",
        ),
        ({"bounded": query(*FORGETFUL, rocks=False)}, "The state of the stream bounded is in memory"),
        ({"bounded": query(*FORGETFUL, late=10)}, "The stream bounded dropped 100 events as too late. How late may"),
        ({"bounded": query(*FORGETFUL, repeats=0)}, "The stream bounded dropped 0 repeats. 10 minutes have 1000"),
        ({"bounded": query(*FORGETFUL, repeats=200)}, "dropped 2000 repeats. Run each cell with send() once"),
    ],
)
def test_wrong_answers(wrong: dict[str, Any], said: str, clean: Cluster, answers: dict[str, Any], verdict: Verdict) -> None:
    verdict.says(said, LAB, clean, **answers | wrong)


def test_no_changelog(clean: Cluster, answers: dict[str, Any], tmp_path: Path, verdict: Verdict) -> None:
    (tmp_path / "rocksdb/state/0/0/1.changelog").rename(tmp_path / "rocksdb/state/0/0/1.zip")
    verdict.says("The checkpoint of the stream rocksdb has no changelog", LAB, clean, **answers)
    (tmp_path / "rocksdb").rename(tmp_path / "rocks")
    verdict.says("There is no checkpoint with the name rocksdb", LAB, clean, **answers)
