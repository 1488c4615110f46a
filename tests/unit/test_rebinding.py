"""What a cell leaves behind when it's run again."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from kafkalab import rebinding
from kafkalab.rebinding import end_nameless, note_started, rebound_in


@pytest.mark.parametrize(
    ("source", "line", "names"),
    [
        ("cluster = make().start()", 1, {"cluster"}),
        ("a, b = make(), make()", 1, {"a", "b"}),
        ("x = 1\ncluster = make(\n    3,\n).start()\ny = 2", 3, {"cluster"}),
        ("cluster: object = make()", 1, {"cluster"}),
        ("both = [cluster := make(), 1]", 1, {"both", "cluster"}),
        ("with make() as cluster:\n    x = 1", 1, {"cluster"}),
        ("with make() as cluster:\n    other = make()", 2, {"other"}),
        ("for n in (1, 2):\n    cluster = make()", 2, {"cluster"}),
        ("cluster = copy_of(cluster)", 1, set()),  # it may hold on to it
        ("clusters += [make()]", 1, set()),
        ("clusters['a'] = make()", 1, set()),
        ("make().start()", 1, set()),
        ("if make():\n    cluster = 1", 1, set()),
        ("not python", 1, set()),
    ],
)
def test_names_that_a_statement_binds(source: str, line: int, names: set[str]) -> None:
    assert rebound_in(source, line) == names


class Thing:
    """Something that runs once it's started."""

    def __init__(self) -> None:
        end_nameless()
        self.running = False

    def start(self) -> Thing:
        self.running = True
        note_started(self, "thing", lambda: self.running, self.stop)
        return self

    def stop(self) -> None:
        self.running = False


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    shell = InteractiveShell()
    monkeypatch.setattr(rebinding, "notebook_shell", lambda: shell)
    monkeypatch.setattr(rebinding, "_started", [])
    monkeypatch.setattr(rebinding, "_watched", None)
    shell.user_ns["Thing"] = Thing
    return shell


def run(shell: Any, *cells: str) -> None:
    for cell in cells:
        assert shell.run_cell(cell, store_history=True).success


def still_running(shell: Any) -> int:
    return sum(one.is_alive() for one in rebinding._started)


def test_a_cell_run_again_leaves_one(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "thing = Thing().start()", "first = thing")
    del shell.user_ns["first"]
    run(shell, "thing = Thing().start()")
    assert still_running(shell) == 1 and shell.user_ns["thing"].running
    assert "An earlier thing still ran, and `thing` doesn't name it any more." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cells", "running"),
    [
        (["one = Thing().start()", "two = Thing().start()"], 2),  # several on purpose
        (["thing = Thing().start()", "kept = thing", "thing = Thing().start()"], 2),
        (["thing = Thing()\nthing.start()"] * 2, 1),
        (["both = [Thing().start(), Thing().start()]"] * 2, 2),
        (["both = {'a': Thing().start()}", "both['b'] = Thing().start()"], 2),
        (["both = {}\nfor n in 'ab':\n    both[n] = Thing().start()"] * 2, 2),
        (["for n in 'ab':\n    thing = Thing().start()"], 2),  # in one cell: that's meant
        (["def made():\n    return Thing().start()", "thing = made()", "thing = made()"], 1),
        (["Thing().start()"] * 2, 1),  # only IPython's `Out` holds it
        (["Thing().start()", "Thing().start() "], 2),  # another cell
        (["thing = Thing().start()", "del thing", "other = Thing().start()"], 1),
    ],
)
def test_only_what_lost_its_name_ends(shell: Any, cells: list[str], running: int) -> None:
    run(shell, *cells)
    assert still_running(shell) == running


def test_outside_notebooks_nothing_ends() -> None:
    thing = Thing().start()
    thing = Thing().start()
    assert thing.running and rebinding._started == []
