"""A masked file and a source that is set back: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect_support import PLAIN_JSON, SMT, TEXT, ask, put
from kafkalab import Cluster, ConnectCluster, wait_until
from kafkalab.cluster.offsets import end_offsets
from support import PATIENCE, Verdict

pytestmark = pytest.mark.cluster

LAB, OFFSETS = "09_file_smt", "09_offsets"
ROUTE = {
    "transforms": "route",
    "transforms.route.type": f"{SMT}.RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "truck_$1",
}
DEPOT = {
    "transforms.depot.type": f"{SMT}.InsertField$Value",
    "transforms.depot.static.field": "depot",
    "transforms.depot.static.value": "Bern",
}


def mask(field: str) -> dict[str, object]:
    how = {"type": f"{SMT}.MaskField$Value", "fields": field}
    return {"transforms": "hide,depot", **{f"transforms.hide.{name}": value for name, value in how.items()}, **DEPOT}


@pytest.fixture
def positions(tmp_path: Path) -> Path:
    path = tmp_path / "positions.txt"
    path.touch()
    drive(path, 1, 10)
    return path


def drive(path: Path, first: int, last: int) -> None:
    with path.open("a") as file:
        for line in range(first, last + 1):
            driver = ("Diana", "Micky", "Lila")[line % 3]
            file.write(json.dumps({"line": line, "truck": 10 + line % 3, "driver": driver, "event": "Normal"}) + "\n")


def source(connect: ConnectCluster, path: Path, name: str = "positions-in", **more: object) -> None:
    put(connect, name, {"connector.class": "FileStreamSource", "file": str(path), "topic": "position", **TEXT, **more})
    connect.wait_until_running(name)


def sink(connect: ConnectCluster, target: Path, chain: dict[str, object], lines: int = 10, **more: object) -> None:
    given = {"connector.class": "FileStreamSink", "file": str(target), "topics": "truck_position", **TEXT, **PLAIN_JSON}
    put(connect, "positions-out", {**given, **chain, **more})
    connect.wait_until_running("positions-out")
    wait_until(lambda: target.exists() and target.read_text().count("\n") >= lines, PATIENCE, f"{lines} lines")


def wait_for(cluster: Cluster, records: int) -> None:
    def found() -> int:
        topics = cluster.describe(groups=False).topics
        return sum(end_offsets(cluster, "truck_position").values()) if "truck_position" in topics else 0

    wait_until(lambda: found() >= records, PATIENCE, f"{records} records", last_seen=found)


def test_a_source_that_is_not_routed(
    single: Cluster, connect: ConnectCluster, positions: Path, tmp_path: Path, verdict: Verdict
) -> None:
    verdict.says("Give check() your answer as connect=", LAB, single)
    verdict.says("There is no connector 'positions-in' yet. The workers know: none.", LAB, single, connect=connect)
    source(connect, positions)
    verdict.says("positions-in has no RegexRouter", LAB, single, connect=connect)
    source(connect, positions, topic="truck_position")
    verdict.says("The setting `topic` of positions-in is 'truck_position'", LAB, single, connect=connect)
    ask(connect, "DELETE", "/connectors/positions-in")
    copy = tmp_path / "copy.txt"  # no offset is known for this one
    copy.write_text(positions.read_text())
    source(connect, copy, **ROUTE)
    wait_for(single, 10)
    verdict.says("There is no connector 'positions-out' yet. The workers know: positions-in.", LAB, single, connect=connect)


def test_a_masked_file_passes(
    single: Cluster, connect: ConnectCluster, positions: Path, tmp_path: Path, verdict: Verdict
) -> None:
    source(connect, positions, **ROUTE)
    wait_for(single, 10)
    sink(connect, tmp_path / "masked.txt", mask("driver"))
    verdict.passes(LAB, single, connect=connect)
    ask(connect, "PUT", "/connectors/positions-out/pause")
    wait_until(lambda: connect.states()["positions-out task 0"] == "PAUSED", PATIENCE, "a pause", ignore=(OSError,))
    verdict.says("is PAUSED", LAB, single, connect=connect)
    source(connect, positions, "positions-again", **ROUTE)
    wait_for(single, 20)
    verdict.says("Line 1 is in truck_position 2 times. Does a connector under another name", LAB, single, connect=connect)


def test_another_chain_with_the_same_effect_passes_too(
    single: Cluster, connect: ConnectCluster, positions: Path, tmp_path: Path, verdict: Verdict
) -> None:
    source(connect, positions, **ROUTE)
    wait_for(single, 10)
    reverse = {**mask("driver"), "transforms": "depot,hide,topic", "transforms.topic.type": f"{SMT}.RegexRouter"}
    reverse |= {"transforms.topic.regex": "truck_(.*)", "transforms.topic.replacement": "$1"}
    sink(connect, tmp_path / "other.txt", {**reverse, "transforms.hide.replacement": "nobody"})
    verdict.passes(LAB, single, connect=connect)


@pytest.mark.parametrize(
    ("chain", "sentence"),
    [
        (mask("driver,truck") | {"transforms": "hide"}, "Where is the field depot with the value Bern?"),
        (mask("line"), "A line of the file names Micky"),
        (mask("driver,truck"), "It should keep its truck and its event: which fields are masked?"),
        (mask("driver") | {"transforms.depot.static.value": "Bernhard"}, "Where is the field depot with the value Bern?"),
    ],
)
def test_a_wrong_chain(
    single: Cluster, connect: ConnectCluster, positions: Path, tmp_path: Path, verdict: Verdict, chain: dict, sentence: str
) -> None:
    source(connect, positions, **ROUTE)
    wait_for(single, 10)
    sink(connect, tmp_path / "masked.txt", chain)
    verdict.says(sentence, LAB, single, connect=connect)


def set_back(connect: ConnectCluster, path: Path, position: int | None) -> None:
    """Stop the source, set its offset (None: reset it), and leave it stopped."""
    ask(connect, "PUT", "/connectors/positions-in/stop")
    where = {"partition": {"filename": str(path)}, "offset": {"position": position}}
    if position is None:
        ask(connect, "DELETE", "/connectors/positions-in/offsets")
    else:
        ask(connect, "PATCH", "/connectors/positions-in/offsets", {"offsets": [where]})


def test_a_source_set_back(single: Cluster, connect: ConnectCluster, positions: Path, verdict: Verdict) -> None:
    drive(positions, 11, 12)
    source(connect, positions, **ROUTE)
    wait_for(single, 12)
    verdict.says("Line 10 is in truck_position 1 time, not twice", OFFSETS, single, connect=connect)
    starts = [0]
    for line in positions.read_bytes().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    set_back(connect, positions, starts[10])
    ask(connect, "PUT", "/connectors/positions-in/resume")
    wait_for(single, 14)
    verdict.says("Line 10 is in truck_position 1 time, not twice", OFFSETS, single, connect=connect)
    set_back(connect, positions, starts[9])  # too late: 11 and 12 come a third time
    ask(connect, "PUT", "/connectors/positions-in/resume")
    wait_for(single, 17)
    verdict.says("Line 11 is in truck_position 3 times, not twice", OFFSETS, single, connect=connect)


@pytest.mark.parametrize("way", ["by hand", "by another file"])
def test_right_lines_again(
    single: Cluster, connect: ConnectCluster, positions: Path, tmp_path: Path, verdict: Verdict, way: str
) -> None:
    drive(positions, 11, 12)
    source(connect, positions, **ROUTE)
    wait_for(single, 12)
    lines = positions.read_text().splitlines(keepends=True)
    if way == "by hand":
        set_back(connect, positions, len("".join(lines[:9]).encode()))
        ask(connect, "PUT", "/connectors/positions-in/resume")
    else:
        late = tmp_path / "late.txt"
        late.write_text("".join(lines[9:]))
        source(connect, late, **ROUTE)
    wait_for(single, 15)
    wait_until(lambda: verdict(OFFSETS, single, connect=connect)[0], PATIENCE, "the check to pass")


def test_a_source_reset_begins_at_the_beginning(
    single: Cluster, connect: ConnectCluster, positions: Path, verdict: Verdict
) -> None:
    drive(positions, 11, 12)
    source(connect, positions, **ROUTE)
    wait_for(single, 12)
    set_back(connect, positions, None)
    ask(connect, "PUT", "/connectors/positions-in/resume")
    wait_for(single, 24)
    verdict.says("Line 1 is in truck_position 2 times. The source began too early", OFFSETS, single, connect=connect)


def test_a_source_set_back_into_a_line(single: Cluster, connect: ConnectCluster, positions: Path, verdict: Verdict) -> None:
    drive(positions, 11, 12)
    source(connect, positions, **ROUTE)
    wait_for(single, 12)
    first_nine = "".join(positions.read_text().splitlines()[:9])  # without the ends of lines
    set_back(connect, positions, len(first_nine.encode()))
    ask(connect, "PUT", "/connectors/positions-in/resume")
    wait_for(single, 16)
    verdict.says("which is no whole line of the file. Did the source begin within a line?", OFFSETS, single, connect=connect)
