"""What a test puts in another's place by name is there. mypy sees no names in texts, and most of these tests run brokers."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
OURS = ("kafkalab", "kafkacourse", "truck_pipeline")


def patches(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what is patched, as the file's imports know it, and the name in it."""
    tree = ast.parse(path.read_text())
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            known.update({one.asname or one.name: f"{node.module}.{one.name}" for one in node.names})
        elif isinstance(node, ast.Import):
            known.update({one.asname or one.name: one.name for one in node.names if one.asname or "." not in one.name})
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "monkeypatch.setattr" and len(node.args) >= 2):
            continue
        if any(word.arg == "raising" for word in node.keywords):
            continue
        target, name = node.args[:2]
        if isinstance(target, ast.Constant) and isinstance(target.value, str):
            owner, _, patched = target.value.rpartition(".")
            yield owner, patched
        elif isinstance(name, ast.Constant) and isinstance(name.value, str):
            first, *rest = ast.unparse(target).split(".")
            yield ".".join([known.get(first, first), *rest]), name.value


def resolved(dotted: str) -> Any:
    """Import the longest module of a dotted name, and get the rest from it."""
    parts = dotted.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"nothing of {dotted} can be imported")


PATCHES = {
    (owner, name): path.relative_to(TESTS)
    for path in sorted(TESTS.rglob("*.py"))
    for owner, name in patches(path)
    if owner.split(".")[0] in OURS
}


@pytest.mark.parametrize(("owner", "name"), sorted(PATCHES))
def test_what_is_patched_exists(owner: str, name: str) -> None:
    assert hasattr(resolved(owner), name), f"{PATCHES[owner, name]} replaces {owner}.{name}, which isn't there"


def test_the_names_are_found(tmp_path: Path) -> None:
    file = tmp_path / "test_x.py"
    file.write_text(
        "from kafkalab import rebinding\nimport os as system\ndef test(monkeypatch):\n"
        "    monkeypatch.setattr(rebinding, '_shell', None)\n    monkeypatch.setattr(system.path, 'join', None)\n"
        "    monkeypatch.setattr('kafkalab.cli.fetch.steps', None)\n"
    )
    assert list(patches(file)) == [("kafkalab.rebinding", "_shell"), ("os.path", "join"), ("kafkalab.cli.fetch", "steps")]
    assert not hasattr(resolved("kafkalab.rebinding"), "_shell")
