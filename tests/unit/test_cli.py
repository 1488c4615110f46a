"""The command line, without brokers."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from rich.console import Console

from kafkalab.cli import build_parser, findings, main
from kafkalab.cli.doctor import examine
from kafkalab.cli.fetch import Step, fetch, more_steps, steps
from kafkalab.cli.findings import Finding
from kafkalab.cli.lab import cancel_tasks, describe, server_options
from kafkalab.cli.storing import LIVE_WIDGET, leaks, machine_marks, note_seconds, strip
from kafkalab.cluster.backends import choose
from kafkalab.course import Content, Course, Update, find_course
from kafkalab.distribution import ClassDataArchive, kafka_archive
from kafkalab.distribution.jars import file_digest
from kafkalab.distribution.registry import registry_archive
from kafkalab.errors import BackendUnavailable, DownloadError
from kafkalab.lifeline import RUN_VARIABLE, started
from kafkalab.paths import files_below, runs_dir
from kafkalab.spark.archive import spark_archive
from kafkalab.waiting import wait_until
from support import PATIENCE, flip_bits

COMMANDS = (
    *("lab", "jump", "reset", "solution", "progress", "export", "import", "join", "leave", "doctor", "fetch", "run", "clean"),
    *("teach", "bundle", "release", "grade"),
)


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine of its own: empty cache, no runs."""
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


# -- the command line itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main([command, "--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: kafkalab {command}")
    assert max(map(len, text.splitlines())) <= 120
    assert len(text.splitlines()) > 8


def test_help_lists_every_command() -> None:
    listed = build_parser().format_help()
    assert all(re.search(rf"^    {command} ", listed, re.MULTILINE) for command in COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
    assert capsys.readouterr().out == f"kafkalab {project['version']}\n"


def test_help_is_quick() -> None:
    """Nothing heavy is loaded before it is needed."""
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kafkalab.cli", "--help"], capture_output=True, text=True, check=True
    ).stderr
    assert not re.findall(r"\| +(pyspark|docker|nbclient|jupyterlab|confluent_kafka|matplotlib|pandas)$", loaded, re.MULTILINE)


def test_error_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def no_network(console: Console, todo: list[Step]) -> None:
        raise DownloadError("3 of the jars could not be downloaded. Is there a network?")

    monkeypatch.setattr("kafkalab.cli.fetch.fetch", no_network)
    assert main(["fetch"]) == 1
    assert capsys.readouterr().err == "kafkalab: 3 of the jars could not be downloaded. Is there a network?\n"


def test_ctrl_c_is_said_plainly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(console: Console, todo: list[Step]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkalab.cli.fetch.fetch", interrupted)
    assert main(["fetch"]) == 130
    assert "kafkalab fetch" in capsys.readouterr().err


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_names_what_is_missing_and_the_command(console: Console) -> None:
    found = [
        Finding("Python", "ok", "3.12.1"),
        Finding("Kafka's jars", "missing", "55 of 55 missing", "kafkalab fetch"),
        Finding("Docker (optional)", "optional", "no engine answers", "start Docker"),
    ]
    assert examine(found, console) == 1
    lines = text_of(console).splitlines()
    assert "✓" in next(line for line in lines if "Python" in line)
    jars = next(line for line in lines if "jars" in line)
    assert "✗" in jars
    assert "kafkalab fetch" in jars
    assert "1 thing" in lines[-1]


def test_doctor_does_without_docker(console: Console) -> None:
    assert examine([Finding("Docker (optional)", "optional", "no engine answers", "start Docker")], console) == 0
    assert "kafkalab lab" in text_of(console)


def test_doctor_on_an_empty_cache(machine: Path) -> None:
    for check in (findings.kafka_jars, findings.spark_connector, findings.class_data_archives, findings.tools):
        finding = check()
        assert (finding.state, finding.remedy) == ("missing", "kafkalab fetch"), finding


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("kafka-4.3.1", "fetch"), ("spark", "fetch"), ("kafka-4.2.1", "fetch --all"), ("registry", "fetch --all")],
)
def test_doctor_finds_a_damaged_archive(name: str, remedy: str, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(archive: ClassDataArchive, *_: object) -> None:
        archive.folder.mkdir(parents=True)
        archive.path.write_bytes(bytes(1000))
        archive._note({"archive": file_digest(archive.path), "touched": []})

    monkeypatch.setattr(ClassDataArchive, "_write", write)
    monkeypatch.setattr("kafkalab.distribution.faulty_jars", lambda group: [])
    monkeypatch.setattr("kafkalab.spark.archive.spark_jars", list)
    archives = {one.name: one for one in (kafka_archive(), kafka_archive("4.2.1"), registry_archive(), spark_archive())}
    for one in (kafka_archive(), archives[name]):
        one.make("")
    finding = findings.class_data_archives()
    assert finding.state == "ok" and name in finding.result
    flip_bits(archives[name].path)
    finding = findings.class_data_archives()
    assert (finding.state, finding.remedy) == ("missing", f"kafkalab {remedy}")
    assert finding.result == f"damaged: {name}; a JVM could crash"


def test_doctor_finds_a_wrong_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text("#!/bin/sh\n")
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("KAFKALAB_JAVA_HOME", str(tmp_path))
    finding = findings.java()
    assert finding.state == "missing"
    assert "17 or newer" in finding.result
    assert finding.remedy == "unset KAFKALAB_JAVA_HOME"


def test_doctor_finds_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.resources.available_memory", lambda: 500_000_000)
    finding = findings.memory()
    assert finding.state == "missing"
    assert "0.5 GB free" in finding.result


def test_doctor_finds_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    assert findings.disk("Disk", tmp_path / "not/yet", "remedy").state == "missing"


def test_doctor_finds_no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    assert findings.docker_engine().state == "optional"


def test_doctor_finds_no_curl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.cli.findings.shutil.which", lambda name: None if name == "curl" else f"/bin/{name}")
    finding = findings.commands()
    assert finding.state == "optional" and finding.result == "no curl (chapter 6 calls it)"
    monkeypatch.setattr("kafkalab.cli.findings.shutil.which", lambda name: f"/bin/{name}")
    assert findings.commands().state == "ok"


def test_doctor_looks_at_everything() -> None:
    names = {finding.subject for finding in findings.find_all()}
    assert len(names) == len(findings.CHECKS)
    assert {"Python", "Java", "Memory", "Ports", "Kafka's jars", "Docker (optional)"} <= names


# -- fetch ------------------------------------------------------------------------------------------------------------


def test_fetch_skips_what_is_there_and_stops_at_the_first_error(console: Console) -> None:
    made: list[str] = []

    def make(name: str, error: Exception | None = None) -> Callable[[Callable[..., object]], None]:
        def step(report: Callable[..., object]) -> None:
            report(f"making {name}", 1, 2)
            if error:
                raise error
            made.append(name)

        return step

    todo = [
        Step("there", "MB", lambda: True, make("there")),
        Step("absent", "steps", lambda: False, make("absent")),
        Step("failing", "steps", lambda: False, make("failing", DownloadError("no network"))),
        Step("later", "steps", lambda: False, make("later")),
    ]
    with pytest.raises(DownloadError):
        fetch(console, todo)
    assert made == ["absent"]
    shown = text_of(console)
    assert "[2/4] absent: 1 of 2: making absent" in shown
    assert "[2/4] absent: ✓" in shown
    assert "later: ✓" not in shown


def test_fetch_all_has_more_steps(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("kafkalab.cli.fetch.fetch", lambda console, todo: asked.append([step.title for step in todo]))
    assert main(["fetch"]) == main(["fetch", "--all"]) == 0
    few, all_of_them = asked
    assert all_of_them[: len(few)] == few and {"schema registry", "Kafka 4.2.1", "the course's own classes in Java"} <= set(
        all_of_them[len(few) :]
    )


def test_the_help_of_fetch_names_every_download(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fetch", "--help"])
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    lines = {step.title: next(line for line in told if line.startswith(step.title)) for step in [*steps(), *more_steps()]}
    assert re.fullmatch(r"schema registry +159 MB +chapters 6, 9 and 11", lines["schema registry"])
    assert all("chapter" in lines[step.title] for step in more_steps())
    lock = json.loads(resources.files("kafkalab.distribution").joinpath("jars.json").read_text())
    groups = [*lock["groups"].values(), *(groups["kafka"] for groups in lock["other_versions"].values())]
    assert sum(step.size for step in [*steps(), *more_steps()]) == sum(jar["bytes"] for group in groups for jar in group)


# -- lab --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two chapters and a lab with its solution; yields the workspace that the commands use for it."""
    content = Content(tmp_path / "course")
    for name in ("notebooks/00_start_here", "notebooks/02_cluster_failover", "labs/02_cluster_failover/02_failsafe"):
        (content.root / name).parent.mkdir(parents=True, exist_ok=True)
        notebook_file(content.root / f"{name}.ipynb", "cluster.start()")
    (content.root / "solutions/02_cluster_failover").mkdir(parents=True)
    notebook_file(content.root / "solutions/02_cluster_failover/02_failsafe.ipynb", "cluster.kill_broker(0)")
    monkeypatch.setattr("kafkalab.course.workspace.find_course", lambda: Course("kafkacourse", content))
    monkeypatch.setenv("KAFKALAB_WORKSPACE", str(tmp_path / "mine"))
    return tmp_path / "mine"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The options of each JupyterLab that would have been started."""
    options: list[list[str]] = []
    monkeypatch.setattr("kafkalab.distribution.put_tools_on_path", lambda: None)
    monkeypatch.setattr("kafkalab.cli.fetch.steps", lambda: [Step("Kafka", "MB", lambda: True, lambda report: None)])
    monkeypatch.setattr("kafkalab.cli.lab._serve", lambda given, **_: options.append(given))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    return options


@pytest.mark.parametrize(
    ("arguments", "opened"),
    [
        (["2"], "notebooks/02_cluster_failover.ipynb"),
        (["02_failsafe"], "labs/02_cluster_failover/02_failsafe.ipynb"),
    ],
)
def test_lab_opens_the_workspace(course: Path, served: list[list[str]], arguments: list[str], opened: str) -> None:
    assert main(["lab", "--no-browser", "--no-standby", *arguments]) == 0
    [options] = served
    assert f"--ServerApp.root_dir={course}" in options
    assert f"--LabApp.workspaces_dir={course}/.kafkalab/layout" in options
    assert f"--LabApp.default_url=/lab/tree/{opened}" in options
    assert (course / opened).exists()


def test_a_projector_gets_large_type(course: Path, served: list[list[str]]) -> None:
    assert main(["lab", "--no-browser", "--no-standby"]) == 0
    assert "projector" not in os.environ["JUPYTER_CONFIG_PATH"]
    assert main(["lab", "--no-browser", "--no-standby", "--projector"]) == 0
    assert "/projector:" in os.environ["JUPYTER_CONFIG_PATH"]


def test_what_a_server_was_at_ends_with_it() -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(asyncio.Event().wait())
    loop.call_soon(loop.stop)  # as JupyterLab does, whatever else goes on
    loop.run_forever()
    assert not task.done()
    cancel_tasks(loop)
    assert task.cancelled()
    cancel_tasks(loop)
    loop.close()


def test_lab_opens_the_home_page(course: Path, served: list[list[str]]) -> None:
    assert main(["lab", "--no-browser", "--no-standby"]) == 0
    assert "--LabApp.default_url=/lab" in served[0]


def test_terminals_of_jupyterlab_find_kafkalab(course: Path, served: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    assert main(["lab", "--no-browser", "--no-standby"]) == 0
    assert os.environ["PATH"].split(os.pathsep) == ["/usr/bin", str(Path(sys.executable).parent)]


def test_lab_opens_a_workspace_elsewhere(
    course: Path, served: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "--no-browser", "--no-standby", "--workspace", "other"]) == 0
    assert f"--ServerApp.root_dir={tmp_path / 'other'}" in served[0]
    assert os.environ["KAFKALAB_WORKSPACE"] == str(tmp_path / "other")
    assert capsys.readouterr().out == (
        f"Your workspace is {tmp_path / 'other'}. Change anything in it: updates never overwrite your work.\n"
    )
    assert not course.exists()


def test_lab_is_brief_when_nothing_changed(course: Path, served: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["lab", "--no-browser", "--no-standby"]
    assert main(command) == 0
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().out == f"Your workspace is {course}.\n"


def test_lab_fetches_first_where_nobody_did(course: Path, served: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()

    def step(name: str) -> Step:
        return Step(name, "MB", lambda: name in there, lambda report: there.add(name))

    monkeypatch.setattr("kafkalab.cli.fetch.steps", lambda: [step("Kafka"), step("Spark")])
    assert main(["lab", "--no-browser", "--no-standby"]) == 0
    assert there == {"Kafka", "Spark"}
    there.remove("Spark")
    assert main(["lab", "--no-browser", "--no-standby"]) == 0
    assert there == {"Kafka"}
    assert len(served) == 2


def test_lab_says_what_an_update_did() -> None:
    update = Update(
        added=["labs/a.ipynb"],
        updated=[f"notebooks/{number}.ipynb" for number in range(9)],
        kept={"notebooks/1.ipynb": Path("/mine/notebooks/1.2026-01-02.ipynb")},
        left={"labs/b.ipynb": "you changed it"},
    )
    assert list(describe(update, Path("/mine"))) == [
        "Your workspace is /mine.",
        "New in the course: labs/a.ipynb.",
        "Updated, because the course changed: 9 files.",
        "Your run of notebooks/1.ipynb is kept in 1.2026-01-02.ipynb.",
        "Left alone, though the course changed: labs/b.ipynb (you changed it).",
        "`kafkalab reset NAME` gives you the course's version and keeps yours beside it.",
    ]


def test_lab_of_an_unknown_name(course: Path, served: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "02_failsave"]) == 1
    assert capsys.readouterr().err == "kafkalab: there is no chapter or lab '02_failsave'; did you mean 02_failsafe?\n"
    assert not served


def test_lab_without_a_course(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("kafkalab.course.workspace.find_course", find_course.__wrapped__)
    monkeypatch.setattr("kafkalab.course.installed.entry_points", lambda group: [])
    assert main(["lab"]) == 1
    assert capsys.readouterr().err == "kafkalab: no course is installed; install this one again\n"


@pytest.mark.parametrize("port", ["abc", "0", "-1", "99999", "8888.5", ""])
def test_lab_explains_a_wrong_port(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["lab", f"--port={port}"])
    assert done.value.code == 2
    assert f"argument --port: {port!r} is no port; a port is a number from 1 to 65535" in capsys.readouterr().err


def test_lab_listens_on_this_machine_only(course: Path) -> None:
    options = server_options(None, course, browser=False, port=None)
    assert "--ServerApp.ip=127.0.0.1" in options
    assert "--ServerApp.open_browser=False" in options


# -- reset and solution -----------------------------------------------------------------------------------------------

LAB = "02_cluster_failover/02_failsafe.ipynb"


def test_reset_keeps_yours(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reset", "02_failsafe"]) == 0
    assert capsys.readouterr().out == f"{course}/labs/{LAB} is fresh.\n"
    (course / "labs" / LAB).write_text("mine")
    assert main(["reset", "02_failsafe"]) == 0
    [kept] = (course / "labs" / LAB).parent.glob("02_failsafe.*-*.ipynb")
    assert capsys.readouterr().out == f"{course}/labs/{LAB} is fresh.\nYours is kept in {kept.name}, beside it.\n"
    assert kept.read_text() == "mine"


@pytest.mark.parametrize(("typed", "shown"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_solution_asks_first(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, shown: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["solution", "failsafe"]) == (0 if shown else 1)
    answer = f"The solution is {course}/solutions/{LAB}.\n" if shown else "Not shown.\n"
    assert capsys.readouterr().out == f"Show the solution of 02_failsafe? [y/N] {answer}"
    assert (course / "solutions" / LAB).exists() == shown


def test_solution_without_being_asked(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solution", "--yes", "02_failsafe"]) == 0
    assert capsys.readouterr().out == f"The solution is {course}/solutions/{LAB}.\n"


def test_solution_of_a_chapter(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solution", "2"]) == 1
    said = "kafkalab: 02_cluster_failover is a chapter, and only labs have solutions; its labs: 02_failsafe\n"
    assert capsys.readouterr() == ("", said)


# -- run --------------------------------------------------------------------------------------------------------------


def notebook_file(path: Path, *sources: str) -> Path:
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    return path


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools need the jars, which a unit test does not fetch."""
    monkeypatch.setattr("kafkalab.distribution.put_tools_on_path", lambda: None)


def test_run_gives_a_verdict_for_each(tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]) -> None:
    good = notebook_file(tmp_path / "good.ipynb", "print(1)", "print(2)")
    bad = notebook_file(tmp_path / "bad.ipynb", "1", "1/0", "2")
    before = good.read_bytes()
    assert main(["run", "-j", "2", str(good), str(bad)]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"✓ \S*good.ipynb  \d+\.\d s", shown)
    assert re.search(r"✗ \S*bad.ipynb  \d+\.\d s  In \[2\]: ZeroDivisionError: division by zero", shown)
    assert "1 passed, 1 failed" in shown
    assert good.read_bytes() == before


def test_run_skips_what_needs_more_memory_than_there_is(
    tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kafkalab.resources.available_memory", lambda: 1500 << 20)
    needy = notebook_file(tmp_path / "needy.ipynb", "1 / 0")
    content = nbformat.read(needy, as_version=4)
    content.metadata["kafkalab"] = {"memory_mb": 1900}
    nbformat.write(content, needy)
    assert main(["run", "--save", str(needy)]) == 0
    assert "skipped: it needs about 1900 MB of memory, but only 1500 MB are free" in capsys.readouterr().out


def test_run_says_that_a_kernel_died(tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]) -> None:
    dying = notebook_file(tmp_path / "dying.ipynb", "1", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert main(["run", str(dying)]) == 1
    assert (
        "In [2]: DeadKernelError: the kernel ended (ended by SIGKILL (9): killed from outside; out of memory?)"
        in capsys.readouterr().out
    )


def test_run_is_not_the_learners_progress(tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "mine"))
    asks = "from kafkalab.paths import progress_dir; folder = progress_dir(); (folder / 'solved').touch(); print(folder)"
    path = notebook_file(tmp_path / "solved.ipynb", asks)
    assert main(["run", "--out", str(tmp_path), str(path)]) == 0
    [written] = [file for file in tmp_path.rglob("solved.ipynb") if nbformat.read(file, 4).cells[0].outputs]
    assert not Path(nbformat.read(written, 4).cells[0].outputs[0].text.strip()).exists()
    assert not (tmp_path / "mine").exists()


def test_run_stores_the_same_twice(tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = notebook_file(tmp_path / "again.ipynb", "print(1)", "import ipywidgets; ipywidgets.IntSlider()")
    monkeypatch.setattr("kafkalab.cli.storing.note_seconds", lambda notebook, _: note_seconds(notebook, 5.2))
    assert main(["run", "--save", str(path)]) == 0
    first = path.read_bytes()
    assert nbformat.read(path, 4).cells[0].outputs[0].text == "1\n"
    assert nbformat.read(path, 4).metadata.kafkalab == {"seconds": 10}
    assert main(["run", "--save", str(path)]) == 0
    assert path.read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == ["again.ipynb"]


def test_run_refuses_to_store_what_tells_of_this_machine(
    tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = notebook_file(tmp_path / "leak.ipynb", "1", "print('127.0.0.1:9092')")
    before = path.read_bytes()
    assert main(["run", "--save", str(path)]) == 1
    assert "In [2] prints an address of a running broker or server: 127.0.0.1:9092" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_run_writes_elsewhere(tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("labs", "solutions"):
        (tmp_path / folder).mkdir()
        notebook_file(tmp_path / folder / "same.ipynb", "print(1)")
    assert main(["run", "--out", "out", "labs/same.ipynb", "solutions/same.ipynb"]) == 0
    assert (tmp_path / "out/labs/same.ipynb").exists()
    assert (tmp_path / "out/solutions/same.ipynb").exists()


def test_run_without_such_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nowhere.ipynb"]) == 1
    assert capsys.readouterr().err == "kafkalab: there is no notebook nowhere.ipynb\n"


def leaks_of(*outputs: NotebookNode, monkeypatch: pytest.MonkeyPatch, home: Path) -> list[str]:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOGNAME", "ada.lovelace")
    cell = new_code_cell("…", execution_count=3, outputs=list(outputs))
    return leaks(new_notebook(cells=[cell]), machine_marks(Path("/srv/kafka-course")))


@pytest.mark.parametrize(
    ("text", "leaked"),
    [
        ("all 13 partitions have a leader", None),
        ("127.0.0.1", None),
        ("log.dirs=/var/lib/kafka", None),
        ("at 10:30", None),
        ("bootstrap 127.0.0.1:19092", "127.0.0.1:19092"),
        ("http://localhost:4040", "localhost:4040"),
        ("file /home/ada/notes", "/home/ada"),
        ("user ada.lovelace", "ada.lovelace"),
        ("/srv/kafka-course/notebooks/x", "/srv/kafka-course"),
        ("/srv/kafka-courses", None),
    ],
)
def test_leaks(text: str, leaked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for output in (
        new_output("stream", name="stdout", text=text),
        new_output("display_data", data={"text/html": f"<b>{text}</b>"}),
        new_output("display_data", data={"image/svg+xml": f"<svg>{text}</svg>"}),
        new_output("error", ename="E", evalue=text, traceback=[]),
    ):
        found = leaks_of(output, monkeypatch=monkeypatch, home=Path("/home/ada"))
        assert bool(found) == bool(leaked), found
        if leaked:
            assert found[0].startswith("In [3] prints ")
            assert found[0].endswith(f": {leaked}")


def test_pixels_are_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = new_output("display_data", data={"image/png": "aaaa/home/ada/aaaa"})
    assert not leaks_of(picture, monkeypatch=monkeypatch, home=Path("/home/ada"))


def test_strip_keeps_the_still_picture() -> None:
    live = new_output("display_data", data={LIVE_WIDGET: {"model_id": "1"}, "image/svg+xml": "<svg/>"})
    notebook = new_notebook(cells=[new_code_cell("map", outputs=[live])], metadata={"widgets": {"state": {}}})
    notebook.cells[0].metadata["execution"] = {"iopub.execute_input": "now"}
    strip(notebook)
    assert notebook.cells[0].outputs[0].data == {"image/svg+xml": "<svg/>"}
    assert "widgets" not in notebook.metadata
    assert "execution" not in notebook.cells[0].metadata


# -- clean ------------------------------------------------------------------------------------------------------------


def test_clean_ends_what_a_crash_left(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = "cluster-left"
    waiting, environment = [sys.executable, "-c", "input()"], {**os.environ, RUN_VARIABLE: run_id}
    with subprocess.Popen(waiting, env=environment, stdin=subprocess.PIPE) as left:  # leaving it ends what is still there
        (runs_dir() / run_id).mkdir(parents=True)
        owner = runs_dir() / "owners/999999-1"  # no such process
        owner.mkdir(parents=True)
        (owner / run_id).touch()
        wait_until(lambda: psutil.Process(left.pid).environ().get(RUN_VARIABLE) == run_id, PATIENCE, "the process to start")
        assert main(["clean"]) == 0
        assert "ended cluster-left: 1 process" in capsys.readouterr().out
        assert left.wait(PATIENCE) is not None
        assert not (runs_dir() / run_id).exists()
        assert main(["clean"]) == 0
        assert "Nothing was left behind" in capsys.readouterr().out


def test_clean_keeps_what_has_containers_on_an_engine_that_does_not_answer(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = runs_dir() / "owners/999999-1"  # no such process
    owner.mkdir(parents=True)
    for run_id in ("cluster-a", "cluster-b", "cluster-c"):
        (runs_dir() / run_id).mkdir()
        (owner / run_id).touch()
    (runs_dir() / "cluster-b/docker").write_text("tcp://127.0.0.1:1")  # nothing listens there
    assert main(["clean"]) == 1
    printed = capsys.readouterr()
    assert "ended cluster-a" in printed.out and "ended cluster-c" in printed.out
    assert "the containers of cluster-b cannot be removed" in printed.err
    assert [claim.name for claim in owner.iterdir()] == ["cluster-b"]
    (runs_dir() / "cluster-b/docker").unlink()  # as the message says, where Docker is gone for good
    assert main(["clean"]) == 0
    assert not (runs_dir() / "cluster-b").exists()


def test_clean_and_fetch_sweep_what_nobody_uses(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kafkalab.cli.fetch.fetch", lambda console, todo: None)
    for command in ("clean", "fetch"):
        unused = machine / f"cache/archives/unused-{command}"
        unused.mkdir(parents=True)
        (unused / "classes.jsa").write_bytes(bytes(2_000_000))
        os.utime(unused, (1, 1))
        assert main([command]) == 0
        assert not unused.exists()
    assert "Freed 2 MB that nobody had used for 30 days." in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "kept"), [("n", True), ("", True), ("y", False)])
def test_clean_asks_before_it_frees_the_cache(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, kept: bool
) -> None:
    (machine / "cache").mkdir()
    (machine / "cache/jar").write_bytes(bytes(3_000_000))
    monkeypatch.setattr("builtins.input", lambda: answer)
    assert main(["clean", "--cache"]) == kept
    assert "(3 MB)" in capsys.readouterr().out
    assert (machine / "cache").exists() == kept


def test_clean_frees_the_cache_when_told_to(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (machine / "cache/deep").mkdir(parents=True)
    (machine / "cache/deep/jar").write_bytes(bytes(2_000_000))
    assert main(["clean", "--cache", "--yes"]) == 0
    assert "Freed 2 MB" in capsys.readouterr().out
    assert not (machine / "cache").exists()


def test_files_below_a_folder_that_others_empty_meanwhile(tmp_path: Path) -> None:
    for name in ("jar", "one/jar", "two/jar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = files_below(tmp_path)
    assert next(found) == tmp_path / "jar"
    shutil.rmtree(tmp_path / "one")
    assert list(found) == [tmp_path / "two/jar"]


def test_clean_spares_the_cache_of_a_running_cluster(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (machine / "cache").mkdir()
    me = psutil.Process()
    owner = runs_dir() / f"owners/{me.pid}-{started(me.pid)}"
    owner.mkdir(parents=True)
    (owner / "cluster-alive").touch()
    assert main(["clean", "--cache", "--yes"]) == 1
    assert "cluster-alive" in capsys.readouterr().err
    assert (machine / "cache").exists()


# -- what cannot work is said in one sentence -------------------------------------------------------------------------------


def sentence_of(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out
    [line] = said.err.splitlines()
    return line


@pytest.mark.parametrize(
    "content", ["# A heading", "", "[]", "{}", '{"cells": 5}', '{"cells": [1], "nbformat": 4}', "\x00\x01"]
)
def test_run_refuses_what_is_no_notebook(
    content: str, tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = tmp_path / "odd.ipynb"
    odd.write_text(content)
    assert main(["run", str(odd)]) == 1
    assert "odd.ipynb is no notebook: it" in sentence_of(capsys)


def test_run_refuses_a_folder_that_cannot_be_made(tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    good = notebook_file(tmp_path / "good.ipynb", "1")
    assert main(["run", "--out", str(tmp_path / "file/out"), str(good)]) == 1
    assert re.search(r"the folder \S*file/out can't be made: Not a directory", sentence_of(capsys))


@pytest.mark.parametrize("number", ["abc", "0", "-1", "2.5", ""])
@pytest.mark.parametrize(("option", "names"), [("--jobs", "-j/--jobs"), ("--timeout", "--timeout")])
def test_run_explains_a_wrong_number(option: str, names: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["run", f"{option}={number}", "any.ipynb"])
    assert done.value.code == 2
    assert f"argument {names}: {number!r} is no whole number of 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["KAFKALAB_CACHE", "HOME"])
def test_fetch_without_a_cache(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """/dev/null stands for all that no folder can be made in, even by root."""
    for other in ("KAFKALAB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, "/dev/null")
    assert main(["fetch"]) == 1
    assert re.search(r"the cache folder /dev/null\S* can't be written \(.*export KAFKALAB_CACHE=", sentence_of(capsys))
    assert main(["doctor"]) == 1


def test_a_cell_has_its_time_limit(tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]) -> None:
    slow = notebook_file(tmp_path / "slow.ipynb", "1", "import threading; threading.Event().wait(60)")
    assert main(["run", "--timeout", "2", str(slow)]) == 1
    assert re.search(r"✗ \S*slow.ipynb .*In \[2\]: took longer than 2 s\n", capsys.readouterr().out)


def test_the_time_limit_does_not_count_preparing(tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]) -> None:
    prepare = """
        import os, threading, pathlib
        note = pathlib.Path(os.environ["KAFKALAB_PREPARING"], "note")
        note.write_text("the jars")
        threading.Event().wait(3)
        note.unlink()"""
    waiting = notebook_file(tmp_path / "waiting.ipynb", textwrap.dedent(prepare))
    assert main(["run", "--timeout", "2", str(waiting)]) == 0
    slow = notebook_file(tmp_path / "slow.ipynb", textwrap.dedent(prepare) + "\nthreading.Event().wait(60)")
    assert main(["run", "--timeout", "2", str(slow)]) == 1
    assert "In [1]: took longer than 2 s, not counting the time for preparing the jars\n" in capsys.readouterr().out


def test_a_kernel_listens_on_sockets_whose_paths_fit(
    tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "from ipykernel.connect import get_connection_info; assert get_connection_info(unpack=True)['transport'] == 'ipc'"
    assert main(["run", str(notebook_file(tmp_path / "told.ipynb", told))]) == 0, capsys.readouterr().out


def test_a_kernel_on_a_port_is_encrypted(
    tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Otherwise ipykernel warns the terminal of it."""
    monkeypatch.setattr("kafkalab.kernel_sockets._LONGEST", 0)
    told = "from ipykernel.connect import get_connection_info as info; assert 'curve_publickey' in info(unpack=True)"
    ran = main(["run", str(notebook_file(tmp_path / "told.ipynb", told))])
    said = "".join(capfd.readouterr())
    assert ran == 0, said
    assert "without encryption" not in said


def test_client_settings_that_are_no_json_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    for broken, said in (("{", "isn't JSON"), ("[1]", "must be a JSON object")):
        monkeypatch.setenv("KAFKALAB_CLIENT_SETTINGS", broken)
        with pytest.raises(BackendUnavailable, match=f"KAFKALAB_CLIENT_SETTINGS {said}"):
            choose("attached")
