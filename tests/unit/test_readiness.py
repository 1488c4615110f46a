"""Who is ready for a class."""

from __future__ import annotations

import getpass
import io
import os
import platform
from importlib.metadata import version
from pathlib import Path

import pytest
from rich.console import Console

from kafkalab.cli import doctor, main
from kafkalab.cli.findings import Finding
from kafkalab.cli.readiness import answers_in, readiness, show_answers
from kafkalab.errors import KafkaLabError

FINE = [Finding("Memory", "ok", "23 GB"), Finding("Docker (optional)", "optional", "none", "start Docker")]
LACKING = [*FINE, Finding("Spark's connector", "missing", f"not in {Path.home()}", "kafkalab fetch")]
OURS = f"kafkalab {version('kafkalab')}"


def refuse() -> float:
    raise KafkaLabError(f"{platform.node()} has no port for a broker in {Path.home()}")


def test_a_ready_machine_says_so_and_how_fast_it_is() -> None:
    line, ready = readiness(FINE, lambda: 3.14)
    assert ready
    assert line.startswith(f"{OURS} | ready | ") and line.endswith(" | 3 brokers in 3.1 s")
    assert "\n" not in line


def test_what_is_missing_is_named_and_no_cluster_is_started() -> None:
    line, ready = readiness(LACKING, lambda: pytest.fail("a cluster was started"))
    assert not ready
    assert "| not ready: Spark's connector |" in line


def test_a_cluster_that_does_not_start_is_missing_too_and_nothing_private_is_in_the_line() -> None:
    line, ready = readiness(FINE, refuse)
    assert not ready
    assert "not ready: a cluster (KafkaLabError)" in line
    for private in (str(Path.home()), platform.node(), os.sep + getpass.getuser()):
        assert private not in line


def test_who_teaches_sees_first_who_is_not_ready(console_text: io.StringIO) -> None:
    ready, lacking = readiness(FINE, lambda: 2.0)[0], readiness(LACKING, lambda: 2.0)[0]
    older = ready.replace(OURS, "kafkalab 0.0.9")
    answers = answers_in(f"Ann: {ready}\n\n{lacking}\nBo\t{older}\nI have no idea what this is\n")
    assert [(answer.who, answer.ready) for answer in answers] == [
        ("", False),
        ("Bo", False),
        ("I have no idea what this is", False),
        ("Ann", True),
    ]
    assert show_answers(answers, Console(file=console_text, width=200)) == 1
    text = console_text.getvalue()
    assert "1 of 4 are ready." in text
    assert f"ready, but with kafkalab 0.0.9; yours is {version('kafkalab')}" in text
    assert "this is no line of `kafkalab doctor --class`" in text
    assert show_answers(answers_in(ready), Console(file=console_text)) == 0
    assert show_answers([], Console(file=console_text)) == 1


@pytest.fixture
def console_text() -> io.StringIO:
    return io.StringIO()


def test_the_command_prints_the_line_and_reads_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "find_all", lambda: FINE)
    monkeypatch.setattr(doctor, "start_a_cluster", lambda: 2.5)
    assert main(["doctor", "--class"]) == 0
    line = capsys.readouterr().out
    sent = tmp_path / "lines.txt"
    sent.write_text(f"Ann {line}", encoding="utf-8")
    assert main(["doctor", "--answers", str(sent)]) == 0
    assert "1 of 1 are ready." in capsys.readouterr().out
    monkeypatch.setattr(doctor, "find_all", lambda: LACKING)
    assert main(["doctor", "--class"]) == 1
    assert "kafkalab doctor" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sent = tmp_path / "sent.txt"
    if content is not None:
        sent.write_bytes(content)
    assert main(["doctor", "--answers", str(sent)]) == 1
    assert "sent.txt can't be read" in capsys.readouterr().err
