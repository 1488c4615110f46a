"""Which earlier statements a cell needs."""

from __future__ import annotations

import pytest

from kafkalab.course.dependencies import Code, ended_by, needs


def taken(*cells: str, start: int | None = None, also: tuple[int, ...] = (), never: tuple[int, ...] = ()) -> list[str]:
    """The code that must run before the last cell, or before another one."""
    code = [Code(cell) for cell in cells]
    found = needs(code, len(cells) - 1 if start is None else start, also=also, never=never)
    assert not found.missing
    return [code[number].part(chosen) for number, chosen in found.parts.items()]


def missing(*cells: str) -> frozenset[str]:
    return needs([Code(cell) for cell in cells], 0).missing


@pytest.mark.parametrize(
    "use",
    [
        "print(x)",
        "y = x",
        "x += 1",
        "y = lambda: x",
        "[x for _ in range(3)]",
        "for y in x: pass",
        "with x as y: pass",
        "!kafka-topics.sh --bootstrap-server {x.servers} --list",
        "told = !echo {x}",
        "f'{x}'",
        "def f(y=x): pass",
        "class C(x): pass",
        "@x\ndef f(): pass",
    ],
)
def test_a_use_of_a_name(use: str) -> None:
    assert taken("x = open('f')", "z = open('g')", use) == ["x = open('f')"]
    assert missing(use) == {"x"}


@pytest.mark.parametrize(
    "cell",
    [
        "for x in range(3): print(x)",
        "x = 1\nprint(x)",
        "[x for x in range(3)]",
        "{x: y for x in range(3) for y in range(x)}",
        "y = lambda x: x",
        "def f(x): return x",
        "import x\nx.y",
        "import x.y\nx.y.z",
        "from a import b as x\nx()",
        "try:\n    pass\nexcept ValueError as x:\n    print(x)",
        "with open('f') as x: x.read()",
        "print(y := 1, y)",
        "!awk '{{print $1}}' file",
        "class C:\n    def f(self): return super().f()",
    ],
)
def test_what_a_cell_makes_itself_it_needs_from_nobody(cell: str) -> None:
    assert not missing(cell)


def test_of_a_cell_that_does_something_all_is_taken() -> None:
    assert taken("note = print", "# why\nx = open('f')\nnote(x)", "x") == ["note = print", "# why\nx = open('f')\nnote(x)"]


def test_of_imports_definitions_and_literals_only_those_that_are_needed() -> None:
    cell = "import a\nfrom b import c\n\ndef f():\n    return c\n\nd = {'e': 1}\nkill()"
    assert taken("def kill(): pass", cell, "a") == ["import a"]
    assert taken("def kill(): pass", cell, "f()") == ["from b import c\ndef f():\n    return c"]
    assert taken("def kill(): pass", cell, "d") == ["d = {'e': 1}"]


def test_a_name_means_its_last_value() -> None:
    assert taken("x = int()", "x = str()", "x") == ["x = str()"]
    assert taken("x = int()", "x += str()", "x") == ["x = int()", "x += str()"]


def test_a_function_reads_names_when_it_is_called() -> None:
    assert taken("def f(): return x", "x = open('f')", "f()") == ["def f(): return x", "x = open('f')"]
    assert taken("x = int()", "def f(): return x", "y = f()", "x = str()", "y", start=4) == [
        "x = int()",
        "def f(): return x",
        "y = f()",
    ]


@pytest.mark.parametrize("change", ["x.append(1)", "x['a'] = 1", "x.a = 1", "del x[0]", "for y in (1, 2): x.add(y)"])
def test_what_changes_an_object_is_needed_with_it(change: str) -> None:
    assert taken("x = []", change, "x") == ["x = []", change]
    assert taken("x = []", change, "x", never=(1,)) == ["x = []"]
    assert taken("x = []", change, "y = 1") == []


def test_a_cell_may_be_needed_for_a_reason_that_names_do_not_show() -> None:
    assert taken("import os", "os.mkdir('a')", "y = 1", also=(1,)) == ["import os", "os.mkdir('a')"]


def test_what_never_started_need_not_be_ended() -> None:
    cells = [Code("x = open('f')"), Code("x.stop()")]
    assert needs(cells, 1).parts
    assert not needs(cells, 1, ends=False).parts


@pytest.mark.parametrize(("cell", "name"), [("a.stop()", "a"), ("a.close()", "a"), ("a.stop(1)", None), ("a.stop().b()", None)])
def test_what_ends_something(cell: str, name: str | None) -> None:
    [statement] = Code(cell).statements
    assert ended_by(statement) == name
