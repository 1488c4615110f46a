"""A damaged Delta table: each way to leave it wrong gets its sentence, and it may be mended row by row or as a whole.

The tables are written here by their format, which is files of rows and a log of what was added and removed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from kafkacourse.ch11_spark_pipeline.lakehouse import BEFORE, CHANGED, COUNTS, EARLY, HIDDEN, WITH_THE_MISTAKE
from kafkacourse.datasets import TruckEvent, truck_events
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "11_lakehouse"
EVENTS = truck_events()


class Table:
    """Writes versions of a Delta table."""

    def __init__(self, lake: Path, name: str) -> None:
        self.folder, self.version, self.files = lake / name, 0, 0
        (self.folder / "_delta_log").mkdir(parents=True)
        self.current: list[str] = []

    def commit(self, operation: str, rows: list[dict[str, Any]], *, replaces: bool = False) -> None:
        actions: list[dict[str, Any]] = [{"commitInfo": {"operation": operation}}]
        if replaces:
            actions += [{"remove": {"path": file}} for file in self.current]
            self.current = []
        if rows:
            file, self.files = f"part {self.files}.parquet", self.files + 1
            parquet.write_table(pyarrow.Table.from_pylist(rows), self.folder / file)
            self.current.append(file.replace(" ", "%20"))
            actions.append({"add": {"path": self.current[-1]}})
        log = self.folder / f"_delta_log/{self.version:020}.json"
        log.write_text("\n".join(map(json.dumps, actions)))
        self.version += 1


def rows(events: list[TruckEvent], hidden: str = "") -> list[dict[str, Any]]:
    return [{"time": e.timestamp, "driver": e.driver, "kind": "Normal" if e.event == hidden else e.event} for e in events]


class Lake:
    """As the lab leaves it before anybody mends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        Table(folder, "bronze").commit("STREAMING UPDATE", [{"value": event.csv()} for event in EVENTS])
        self.silver, self.gold = Table(folder, "silver"), Table(folder, "gold")
        self.silver.commit("STREAMING UPDATE", rows(EVENTS[:BEFORE]))
        self.silver.commit("UPDATE", rows(EVENTS[:BEFORE], HIDDEN), replaces=True)
        self.silver.commit("STREAMING UPDATE", rows(EVENTS[BEFORE:]))
        self.count(WITH_THE_MISTAKE)

    def count(self, counts: dict[int, int]) -> None:
        self.gold.commit("WRITE", [{"driver": d, "alarms": n} for d, n in counts.items()], replaces=True)

    def answers(self, **other: object) -> dict[str, object]:
        return {"lake": str(self.folder), "good": 0, "changed": CHANGED, **other}


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    create(clean, "truck_position", 2, 1)
    put(clean, "truck_position", [(str(event.driver), event.csv(), -1) for event in EVENTS])
    return clean


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_the_counts_are_those_of_the_lab() -> None:
    assert CHANGED > 0 and sum(COUNTS.values()) == 43
    assert len({str(counts) for counts in (COUNTS, WITH_THE_MISTAKE, EARLY)}) == 3


def test_nothing_was_done(clean: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    verdict.says("There is no topic 'truck_position' yet", LAB, clean)
    create(clean, "truck_position", 1, 1)
    verdict.says("truck_position was given 0 events, not 120", LAB, clean)
    put(clean, "truck_position", [("11", "x", 0)] * 120)
    verdict.says("Give check() your answer as lake=", LAB, clean)
    verdict.says("There is no Delta table bronze", LAB, clean, lake=str(tmp_path))


def test_wrong_answers_about_the_past(sent: Cluster, verdict: Verdict, lake: Lake) -> None:
    verdict.says("`good` is 1. That version is made by UPDATE", LAB, sent, **lake.answers(good=1))
    verdict.says("`good` is 9. That version is not there", LAB, sent, **lake.answers(good=9))
    verdict.says("`changed` is 80", LAB, sent, **lake.answers(changed=BEFORE))


def test_left_as_it_is(sent: Cluster, verdict: Verdict, lake: Lake) -> None:
    verdict.says(f"silver has {CHANGED} events of another kind than its truck sent", LAB, sent, **lake.answers())


def test_taken_back_without_what_came_after(sent: Cluster, verdict: Verdict, lake: Lake) -> None:
    lake.silver.commit("RESTORE", rows(EVENTS[:BEFORE]), replaces=True)
    lake.count(EARLY)
    verdict.says("silver lacks 40 events, 40 of them sent after the mistake", LAB, sent, **lake.answers())


def test_added_to_what_is_there(sent: Cluster, verdict: Verdict, lake: Lake) -> None:
    lake.silver.commit("WRITE", rows(EVENTS[:BEFORE]))
    verdict.says("silver has 80 events more than once", LAB, sent, **lake.answers())


def test_gold_is_forgotten(sent: Cluster, verdict: Verdict, lake: Lake) -> None:
    lake.silver.commit("WRITE", rows(EVENTS), replaces=True)
    verdict.says("gold has the counts that the mistake made", LAB, sent, **lake.answers())
    lake.count(EARLY)
    verdict.says("gold has the counts of the first 80 events", LAB, sent, **lake.answers())
    lake.count(COUNTS | {28: 1})
    verdict.says("gold has 1 for driver 28", LAB, sent, **lake.answers())


def test_made_again_without_a_past(sent: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "one")
    new = Table(tmp_path / "two", "silver")
    Table(tmp_path / "two", "bronze").commit("WRITE", [{"value": event.csv()} for event in EVENTS])
    new.commit("WRITE", rows(EVENTS))
    verdict.says("The history of silver has no UPDATE", LAB, sent, **lake.answers(lake=str(tmp_path / "two")))


def test_restored_and_filled_up(sent: Cluster, verdict: Verdict, lake: Lake) -> None:
    lake.silver.commit("RESTORE", rows(EVENTS[:BEFORE]), replaces=True)
    lake.silver.commit("WRITE", rows(EVENTS[BEFORE:]))
    lake.count(COUNTS)
    verdict.passes(LAB, sent, **lake.answers())


def test_merged_or_worked_out_anew_from_bronze(sent: Cluster, verdict: Verdict, lake: Lake) -> None:
    lake.silver.commit("MERGE", rows(EVENTS), replaces=True)
    lake.count(COUNTS)
    verdict.passes(LAB, sent, **lake.answers())
