"""The command line, without brokers."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from rich.console import Console

from kafkalab.cli import build_parser, findings, main
from kafkalab.cli.course import chapter
from kafkalab.cli.doctor import examine
from kafkalab.cli.fetch import Step, fetch
from kafkalab.cli.findings import Finding
from kafkalab.cli.lab import server_options
from kafkalab.cli.storing import LIVE_WIDGET, leaks, machine_marks, strip
from kafkalab.errors import DownloadError, KafkaLabError
from kafkalab.lifeline import RUN_VARIABLE
from kafkalab.paths import runs_dir
from kafkalab.waiting import wait_until

COMMANDS = ("lab", "doctor", "fetch", "run", "clean")


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
    for check in (findings.kafka_jars, findings.spark_connector, findings.class_data_archive, findings.tools):
        finding = check()
        assert (finding.state, finding.mend) == ("missing", "kafkalab fetch"), finding


def test_doctor_finds_a_wrong_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text("#!/bin/sh\n")
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("KAFKALAB_JAVA_HOME", str(tmp_path))
    finding = findings.java()
    assert finding.state == "missing"
    assert "17 or newer" in finding.found
    assert finding.mend == "unset KAFKALAB_JAVA_HOME"


def test_doctor_finds_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.cluster.resources.available_memory", lambda: 500_000_000)
    finding = findings.memory()
    assert finding.state == "missing"
    assert "0.5 GB free" in finding.found


def test_doctor_finds_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    assert findings.disk("Disk", tmp_path / "not/yet", "mend").state == "missing"


def test_doctor_finds_no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    assert findings.docker_engine().state == "optional"


def test_doctor_finds_no_curl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings.shutil, "which", lambda name: None if name == "curl" else f"/bin/{name}")
    finding = findings.commands()
    assert finding.state == "optional" and finding.found == "no curl (chapter 6 calls it)"
    monkeypatch.setattr(findings.shutil, "which", lambda name: f"/bin/{name}")
    assert findings.commands().state == "ok"


def test_doctor_looks_at_everything() -> None:
    names = {finding.what for finding in findings.find_all()}
    assert len(names) == len(findings.CHECKS)
    assert {"Python", "Java", "Memory", "Ports", "Kafka's jars", "Docker (optional)"} <= names


# -- fetch ------------------------------------------------------------------------------------------------------------


def test_fetch_skips_what_is_there_and_stops_at_the_first_error(console: Console) -> None:
    made: list[str] = []

    def make(name: str, error: Exception | None = None):
        def step(report) -> None:
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


def test_fetch_all_has_more_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("kafkalab.cli.fetch.fetch", lambda console, todo: asked.append([step.title for step in todo]))
    assert main(["fetch"]) == main(["fetch", "--all"]) == 0
    few, all_of_them = asked
    assert all_of_them[: len(few)] == few and "schema registry" in all_of_them[len(few) :]


# -- lab --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "notebooks").mkdir()
    for stem in ("00_start_here", "01_single_node", "02_cluster_failover", "03_producer"):
        nbformat.write(new_notebook(), tmp_path / f"notebooks/{stem}.ipynb")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        (None, "00_start_here"),
        ("2", "02_cluster_failover"),
        ("02", "02_cluster_failover"),
        ("02_cl", "02_cluster_failover"),
        ("cluster", "02_cluster_failover"),
        ("01_single_node.ipynb", "01_single_node"),
    ],
)
def test_lab_finds_the_chapter(course: Path, name: str | None, stem: str) -> None:
    assert chapter(name, course).stem == stem


@pytest.mark.parametrize(("name", "said"), [("7", "there is no chapter '7'"), ("s", "'s' may mean several")])
def test_lab_says_which_chapters_there_are(course: Path, name: str, said: str) -> None:
    with pytest.raises(KafkaLabError, match=said) as error:
        chapter(name, course)
    assert "01_single_node" in str(error.value)


def test_lab_outside_of_the_course(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kafkalab.__file__", str(tmp_path / "a/b/c/__init__.py"))
    assert main(["lab"]) == 1
    assert "change into the folder that was cloned" in capsys.readouterr().err


def test_lab_listens_on_this_machine_only(course: Path) -> None:
    options = server_options(chapter(None, course), course, browser=False, port=None)
    assert "--ServerApp.ip=127.0.0.1" in options
    assert f"--ServerApp.root_dir={course}" in options
    assert "--ServerApp.open_browser=False" in options


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


def test_run_says_that_a_kernel_died(tmp_path: Path, no_tools: None, capsys: pytest.CaptureFixture[str]) -> None:
    dying = notebook_file(tmp_path / "dying.ipynb", "1", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert main(["run", str(dying)]) == 1
    assert "In [2]: DeadKernelError" in capsys.readouterr().out


def test_run_is_not_the_learners_progress(tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "mine"))
    asks = "from kafkalab.paths import progress_dir; folder = progress_dir(); (folder / 'solved').touch(); print(folder)"
    path = notebook_file(tmp_path / "solved.ipynb", asks)
    assert main(["run", "--out", str(tmp_path), str(path)]) == 0
    [written] = [file for file in tmp_path.rglob("solved.ipynb") if nbformat.read(file, 4).cells[0].outputs]
    assert not Path(nbformat.read(written, 4).cells[0].outputs[0].text.strip()).exists()
    assert not (tmp_path / "mine").exists()


def test_run_stores_the_same_twice(tmp_path: Path, no_tools: None) -> None:
    path = notebook_file(tmp_path / "again.ipynb", "print(1)", "import ipywidgets; ipywidgets.IntSlider()")
    assert main(["run", "--save", str(path)]) == 0
    first = path.read_bytes()
    assert nbformat.read(path, 4).cells[0].outputs[0].text == "1\n"
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


def leaks_of(*outputs, monkeypatch: pytest.MonkeyPatch, home: Path) -> list[str]:
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
    left = subprocess.Popen(["tail", "-f", "/dev/null"], env={**os.environ, RUN_VARIABLE: run_id})
    try:
        (runs_dir() / run_id).mkdir(parents=True)
        owner = runs_dir() / "owners/999999-1"  # no such process
        owner.mkdir(parents=True)
        (owner / run_id).touch()
        wait_until(lambda: psutil.Process(left.pid).environ().get(RUN_VARIABLE) == run_id, 5, "the process to start")
        assert main(["clean"]) == 0
        assert "ended cluster-left: 1 process" in capsys.readouterr().out
        assert left.wait(5) is not None
        assert not (runs_dir() / run_id).exists()
        assert main(["clean"]) == 0
        assert "Nothing was left behind" in capsys.readouterr().out
    finally:
        left.kill()
        left.wait()


def test_clean_keeps_what_has_containers_on_an_engine_that_does_not_answer(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_clean_spares_the_cache_of_a_running_cluster(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (machine / "cache").mkdir()
    me = psutil.Process()
    owner = runs_dir() / f"owners/{me.pid}-{int(me.create_time() * 1000)}"
    owner.mkdir(parents=True)
    (owner / "cluster-alive").touch()
    assert main(["clean", "--cache", "--yes"]) == 1
    assert "cluster-alive" in capsys.readouterr().err
    assert (machine / "cache").exists()
