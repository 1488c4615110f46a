"""The command line: what each command gets, and how a failure ends it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from truck_pipeline.__main__ import main
from truck_pipeline.checkpoint import CheckpointRefused
from truck_pipeline.commands import COMMANDS, Command


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PIPELINE_DATABASE", "postgresql://me:s3cret@here/db")
    file = tmp_path / "pipeline.toml"
    file.write_text("kafka.bootstrap.servers = 'a:1'\nregistry.url = 'http://b'\ncheckpoint.folder = 'c'\nlake.folder = 'd'\n")
    return str(file)


def called_with(name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    options: dict[str, Any] = {}
    command = Command(lambda _, **given: options.update(given), (), COMMANDS[name].options)
    monkeypatch.setattr("truck_pipeline.__main__.COMMANDS", {name: command})
    main([name, *arguments])
    return options


def test_a_command_gets_its_options(settings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ["--settings", settings]
    days = ["--begin", "2026-11-01", "--end", "2026-11-02T00:00+01:00"]
    times = called_with("back-fill", [*file, *days], monkeypatch)
    assert times == {"begin": datetime(2026, 11, 1, tzinfo=UTC), "end": datetime(2026, 11, 1, 23, tzinfo=UTC)}
    reasons = ["--reason", "schema", "--reason", "value"]
    assert called_with("replay", [*file, *reasons], monkeypatch) == {"reason": ["schema", "value"], "limit": 3}
    assert called_with("run", file, monkeypatch) == {}


@pytest.mark.parametrize("arguments", [["replay"], ["replay", "--reason", "mood"], ["back-fill", "--begin", "today"]])
def test_an_option_that_is_wrong(arguments: list[str], settings: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--settings", settings])
    assert ended.value.code == 2 and "usage: truck-pipeline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (CheckpointRefused("the checkpoint is another's"), "the checkpoint is another's"),
        (ConnectionError("no answer from postgresql://me:s3cret@here/db"), "no answer from …"),
        (RuntimeError("what is this"), "run has failed"),
    ],
)
def test_a_failure_is_the_last_line_of_the_log(
    problem: Exception, said: str, settings: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise problem

    monkeypatch.setattr("truck_pipeline.__main__.COMMANDS", {"run": Command(fail, ())})
    with pytest.raises(SystemExit) as ended:
        main(["run", "--settings", settings])
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert ended.value.code == 1 and (line["level"], line["msg"]) == ("ERROR", said)
    assert ("exception" in line) == isinstance(problem, RuntimeError)
