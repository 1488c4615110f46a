"""Submissions that really run: a right one, a wrong one, and one that runs for ever, each closed off."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from threading import Event

import psutil
import pytest

from kafkalab.checks.lab import find_lab
from kafkalab.cli import main
from kafkalab.grading.enclosure import ROOM
from kafkalab.grading.grade import Task, grade, prepare
from kafkalab.grading.isolation import choose, why_no_namespaces
from kafkalab.grading.marks import Mark
from kafkalab.grading.session import run_submission
from kafkalab.grading.submissions import find_submissions
from support import PATIENCE

ROOT = Path(__file__).parents[2]
LAB = "00_first_record"

# One broker will do for this lab's check.
START = """
from confluent_kafka import Producer
from kafkalab import Cluster
cluster = Cluster(brokers=1).start()
sent = []
producer = Producer(cluster.client_config())
producer.produce("greetings", "My first record", on_delivery=lambda error, record: sent.append(record))
producer.flush()
coordinates = (sent[0].topic(), sent[0].partition(), sent[0].offset())
read_back = sent[0].value()
"""
CALL = f'check("{LAB}", cluster, coordinates=coordinates, read_back=read_back)'
# What it says of itself isn't so, and it tries what it shouldn't be able to do.
FAKE = """
import os, socket
could = []
try:
    socket.create_connection(("192.0.2.1", 80), 1)
except OSError as error:
    could += [] if error.strerror == "Network is unreachable" else [f"try the network: {error}"]
for path in TARGETS:
    try:
        open(path, "a")
        could.append(f"write {path}")
    except OSError:
        pass
if os.path.exists(SUBMISSIONS):
    could.append("see other submissions")
if os.geteuid() == 0:
    could.append("be root")
def check(*anything, **more):
    print("All 3 requirements are met. Lab passed.")
coordinates = ("greetings", 0, 99)
assert not could, could
undefined
"""


def hand_in(path: Path, *sources: str) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "source": source, "outputs": []} for source in sources]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))


def run(task: Task, interrupted: Event) -> Mark:
    folder = task.submission.path.parent
    isolation = choose(in_container=False).hiding(folder)
    return run_submission(task.submission, task.lab, task.steps, isolation, task.limits, interrupted)


def is_of_a_submission(process: psutil.Process) -> bool:
    return (process.info["environ"] or {}).get("TMPDIR", "").startswith(ROOM)


@pytest.mark.cluster
@pytest.mark.skipif(bool(why_no_namespaces()), reason=f"namespaces: {why_no_namespaces()}")
def test_a_right_one_a_wrong_one_and_an_endless_loop(tmp_path: Path) -> None:
    targets = [
        str(Path(__file__).with_name("written")),
        str(Path.home() / "written"),
        str(tmp_path / "marks.csv"),
        "/etc/written",
    ]
    hand_in(tmp_path / "anna.ipynb", START, CALL)
    hand_in(tmp_path / "ben.ipynb", "while True: pass")
    hand_in(tmp_path / "cleo.ipynb", f"TARGETS, SUBMISSIONS = {targets}, {str(tmp_path)!r}", START, FAKE, CALL)
    limits = (2 * PATIENCE, 8, 2 * PATIENCE)
    work = [prepare(one, find_lab(LAB), limit) for one, limit in zip(find_submissions(tmp_path), limits, strict=True)]
    anna, ben, cleo = grade(work, run, at_once=3, keep=lambda marks: None, done=lambda mark: None)
    assert (anna.met, anna.reason) == (3, "")
    assert ben.met == 0 and ben.reason.startswith("time limit of 8 s, in ")
    # Its record is there and was read back; the coordinates are wrong.
    assert (cleo.met, cleo.reason) == (2, "cell 3: NameError: name 'undefined' is not defined")
    assert not [process.pid for process in psutil.process_iter(["environ"]) if is_of_a_submission(process)]


@pytest.mark.docker
def test_a_right_one_in_a_container(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one_line = "ids = !kafka-storage.sh random-uuid\nassert len(ids) == 1, ids"
    hand_in(tmp_path / "anna.ipynb", START, one_line, CALL)
    assert marks_in_a_container(tmp_path, LAB, tmp_path / "marks.csv") == [("3", "3", "")], capsys.readouterr().out


@pytest.mark.docker
@pytest.mark.at_length
@pytest.mark.timeout(600)
def test_the_lab_of_chapter_02_in_a_container(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "all").mkdir()
    shutil.copy(ROOT / "solutions/02_cluster_failover/02_failsafe.ipynb", tmp_path / "all")
    [(met, of, reason)] = marks_in_a_container(tmp_path / "all", "02_failsafe", tmp_path / "marks.csv")
    assert met == of and not reason, capsys.readouterr().out


def marks_in_a_container(submissions: Path, lab: str, marks: Path) -> list[tuple[str, str, str]]:
    """What ``grade --container`` writes for each submission: requirements met, of how many, and the reason if it's fewer."""
    options = ["--container", "--lab", lab, "--limit", "300", "--output", str(marks)]
    assert main(["grade", str(submissions), *options]) == 0
    with marks.open(encoding="utf-8") as lines:
        return [(row["met"], row["of"], row["reason"]) for row in csv.DictReader(lines)]
