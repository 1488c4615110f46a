"""Errors in a cell."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

from kafkalab.errors import UnknownBroker
from kafkalab.widgets.folded_errors import fold_errors


def test_an_error_of_ours_is_one_sentence_with_the_traceback_folded(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folded: list[dict[str, str]] = []
    monkeypatch.setattr("kafkalab.widgets.folded_errors.display", lambda bundle, raw: folded.append(bundle))
    fold_errors(shell)
    shell.user_ns["UnknownBroker"] = UnknownBroker
    result = shell.run_cell("raise UnknownBroker('There is no broker <9>.\\nLog: …')")
    assert not result.success
    assert capsys.readouterr().out.strip() == "\x1b[31mUnknownBroker\x1b[0m: There is no broker <9>."
    (bundle,) = folded
    assert "<details>" in bundle["text/html"] and "&lt;9&gt;" in bundle["text/html"]
    assert "raise UnknownBroker" in bundle["text/plain"] and "Log: …" in bundle["text/plain"]


def test_other_errors_look_as_ever(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kafkalab.widgets.folded_errors.display", lambda *_, **__: pytest.fail("it was folded"))
    fold_errors(shell)
    assert not shell.run_cell("1 / 0").success
    assert "Traceback (most recent call last)" in capsys.readouterr().out


def test_a_wrong_argument_is_folded_where_kafkalab_refuses_it(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folded: list[dict[str, str]] = []
    monkeypatch.setattr("kafkalab.widgets.folded_errors.display", lambda bundle, raw: folded.append(bundle))
    fold_errors(shell)
    assert not shell.run_cell("from kafkalab import Cluster\nCluster('3')").success
    assert len(folded) == 1
    assert "Traceback" not in capsys.readouterr().out
    assert not shell.run_cell("int('three')").success
    assert len(folded) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().out
