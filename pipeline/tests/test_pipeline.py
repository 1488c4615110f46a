"""The truck pipeline without Kafka and Spark: reports, answers, checkpoint, schemas and outages."""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from small_registry import SmallRegistry
from truck_pipeline import DRIVERS, Trucks, answers
from truck_pipeline.checkpoint import Checkpoint, CheckpointRefused
from truck_pipeline.events import SCHEMA
from truck_pipeline.ledger import Answers
from truck_pipeline.outage import retry
from truck_pipeline.settings import Settings
from truck_pipeline.tables import Tables
from truck_pipeline.trucks import Event
from truck_pipeline.writers import NewSchema, Writers

EVENTS = 4000


def test_the_same_trucks_report_the_same() -> None:
    assert Trucks().reports(300) == Trucks().reports(300) != Trucks(seed=12).reports(300)
    first = Trucks().reports(1)[0].event
    assert first == Event(1506974400000, 105, 35, 1198242881, "Unsafe following distance", 41.6559, -87.8085, "105-000000")


def test_what_goes_wrong_on_the_way() -> None:
    reports = Trucks().reports(EVENTS)
    events = [report.event for report in reports if report.event]
    copies = Counter(event.correlation for event in events)
    assert len(copies) == EVENTS
    assert 0.01 < sum(copies.values()) / EVENTS - 1 < 0.03  # repeats
    spoilt = [report.malformed for report in reports if not report.event]
    assert 0.005 < len(spoilt) / EVENTS < 0.015 and len(set(spoilt)) == 4
    ahead, late = 0, []
    for event in events:
        ahead = max(ahead, event.timestamp)
        late.append((ahead - event.timestamp) / 1000)
    assert 10 < max(late) <= 32  # seconds: within the pipeline's patience
    assert 0.02 < sum(seconds > 1.5 for seconds in late) / len(late) < 0.05


def test_trucks_stay_on_their_routes() -> None:
    events = [report.event for report in Trucks().reports(EVENTS) if report.event]
    assert all(38 < event.latitude < 42 and -95 < event.longitude < -87 for event in events)
    assert len({event.driver for event in events}) == 12
    assert {driver.id for driver in DRIVERS} == {event.driver for event in events} - {28}


def test_answers_from_a_ledger() -> None:
    kinds = {"a": (1_000, "Normal"), "b": (59_999, "Overspeed"), "c": (60_000, "Overspeed")}
    events = [Event(time, 1, 11, 5, kind, 40.0, -90.0, name) for name, (time, kind) in kinds.items()]
    events.append(Event(61_000, 2, 28, 5, "Lane Departure", 40.0, -90.0, "d"))
    found = answers(events)
    assert found.counts == {(0, 11): (2, 1), (60, 11): (1, 1), (60, 28): (1, 1)} and found.events == 4
    assert found.dangerous == {"b": (11, "Micky Isaacson"), "c": (11, "Micky Isaacson"), "d": (28, None)}
    random.Random(1).shuffle(events)
    assert answers(events + events[:2]) == found
    assert answers(events[:2]).lacks(found) == 4 - len(events[:2]) and found.lacks(Answers({}, {})) == 0


def test_settings_do_not_show_the_password() -> None:
    login = {"kafka.sasl.jaas.config": 'password="secret"'}
    settings = Settings(login, "http://registry", "postgresql://me:secret@here/db", "/tmp/point")
    assert "secret" not in repr(settings)


def test_the_sink_sends_in_batches_unless_the_settings_say_otherwise() -> None:
    address = {"kafka.bootstrap.servers": "here:1"}
    batches = {"kafka.linger.ms": "20", "kafka.batch.size": "262144"}
    assert Settings(address, "", "", "").sink("alarms") == {**address, **batches, "topic": "alarms"}
    assert Settings({**address, "kafka.linger.ms": "0"}, "", "", "").sink("alarms")["kafka.linger.ms"] == "0"


class LocalFiles:
    """What a checkpoint does with files, without Spark."""

    def __init__(self, _: object, folder: str) -> None:
        self._folder = Path(folder)

    def names(self, folder: str = "") -> list[str]:
        path = self._folder / folder
        return [found.name for found in path.iterdir()] if path.exists() else []

    def read(self, name: str) -> str:
        return (self._folder / name).read_text()

    def added(self, name: str) -> list[str]:
        return [self.read(f"{name}/{file}") for file in self.names(name)]

    def add(self, name: str, text: str) -> None:
        self.write(f"{name}/{len(self.names(name))}", text)

    def write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of two streams, as Spark leaves it in the middle of the third batch of one of them."""
    monkeypatch.setattr("truck_pipeline.checkpoint.files", LocalFiles)
    files = LocalFiles(None, str(tmp_path / "point"))
    for stream, batches in (("one", 3), ("two", 2)):
        files.write(f"{stream}/metadata", json.dumps({"id": stream * 2}))
        for batch in range(batches):
            files.write(f"{stream}/offsets/{batch}", 'v1\n{"batchWatermarkMs":0}\n{"t":{"0":5}}')
        for batch in range(2):
            files.write(f"{stream}/commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')
    notes = checkpoint("1 minute", tmp_path)
    notes.note("topic-a", {})
    notes.note("topic-a", {"one": "oneone", "two": "twotwo"})
    return tmp_path / "point"


def checkpoint(window: str, folder: Path) -> Checkpoint:
    return Checkpoint(None, str(folder / "point"), "pipeline", {"window": window}, ["one", "two"])


def test_a_checkpoint_that_streams_go_on_from(point: Path, tmp_path: Path) -> None:
    again = checkpoint("1 minute", tmp_path)
    assert again.require("topic-a")
    again.note("topic-a", {"one": "oneone", "two": "twotwo"})
    assert len(list((point / "pipeline.json").iterdir())) == 2  # as before: it's known
    shutil.rmtree(point)
    assert not checkpoint("1 minute", tmp_path).require("topic-a")
    assert not point.exists()
    checkpoint("1 minute", tmp_path).note("topic-a", {})  # streams ended before they began
    assert not checkpoint("1 minute", tmp_path).require("topic-a")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda point: shutil.rmtree(point / "pipeline.json"), "belongs to another query: it holds one, two"),
        (lambda point: (point / "pipeline.json/0").write_text("{"), "is damaged"),
        (
            lambda point: (point / "one/metadata").write_text('{"id": "other"}'),
            "belongs to another query: one isn't the one that was there",
        ),
        (lambda point: shutil.rmtree(point / "one"), "is damaged .*metadata"),
        (lambda point: (point / "one/offsets/2").write_text("v1\n{"), "is damaged"),
        (lambda point: (point / "two/offsets/1").write_text(""), "is damaged"),
        (lambda point: (point / "two/commits/1").write_text("v1\n"), "is damaged"),
        (lambda point: (point / "one/commits/1").unlink(), "is damaged .one has no commits that fit its offsets"),
        (lambda point: (point / "two/offsets/1").unlink(), "is damaged .two has no commits that fit its offsets"),
        (lambda point: shutil.rmtree(point / "two/offsets"), "is damaged .two has no commits that fit its offsets"),
    ],
)
def test_a_checkpoint_that_is_damaged(point: Path, tmp_path: Path, change: Callable[[Path], object], said: str) -> None:
    change(point)
    with pytest.raises(CheckpointRefused, match=f"the checkpoint in {point} {said}.*Nothing was changed; "):
        checkpoint("1 minute", tmp_path).require("topic-a")


def test_a_checkpoint_of_something_else(point: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointRefused, match="its window is 1 minute, not 2 minutes.*; give this one an empty folder"):
        checkpoint("2 minutes", tmp_path).require("topic-a")
    with pytest.raises(CheckpointRefused, match="a topic that was deleted. Another one has its name now"):
        checkpoint("1 minute", tmp_path).require("topic-b")


def test_schemas_that_come_while_streams_run() -> None:
    with SmallRegistry() as registry:
        writers = Writers(Settings({}, registry.url, "", ""))
        assert writers.ask() == {}  # nobody has registered one
        writers.require_known(range(10_000), [])  # ids that nobody registered, and no memory of them
        assert registry.asked == 2
        registry.schemas[7] = SCHEMA
        writers.require_known([], [])
        writers.require_known([7, 8], [7])
        with pytest.raises(NewSchema, match=r"with the ids \[7\]"):
            writers.require_known([7, 8], [])
        assert writers.ask() == {7: SCHEMA}


def test_servers_that_are_away(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionError, match=r"the registry at http://127.0.0.1:1 hasn't answered for 0 s: .*refused"):
        Writers(Settings({}, "http://127.0.0.1:1", "", "", wait=0)).ask()
    with pytest.raises(ConnectionError, match=r"PostgreSQL hasn't answered for 0 s: .*refused"):
        Tables("postgresql://127.0.0.1:1/db", "live", wait=0).create()
    assert "trying again for up to 0 s" in caplog.text and caplog.records[0].levelno == logging.WARNING


def test_a_server_that_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    answers_so_far: list[int] = []

    def request() -> int:
        answers_so_far.append(0)
        if len(answers_so_far) == 1:
            raise OSError("gone\nor so")
        return 0

    assert retry(request, "the server", 10, (OSError,)) == 0 and len(answers_so_far) == 2
    assert caplog.messages == ["the server doesn't answer (gone); trying again for up to 10 s"]
    with pytest.raises(ValueError, match="wrong"):
        retry(lambda: int("wrong"), "the server", 10, (OSError,))
