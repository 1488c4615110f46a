"""Hints use what their lab has."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import nbformat
import pytest
from confluent_kafka import Consumer, Message, Producer

from kafkalab import Cluster
from kafkalab.checks import Lab, labs

ROOT = Path(__file__).parents[2]
IMPORTED = re.compile(r"\bimport (\([^)]*\)|.*)")
METHODS = {*dir(Consumer), *dir(Producer), *dir(Message), *dir(Path), *dir(Cluster)}  # may be named without their object
DEFINED = re.compile(r"\bdef (\w+)\(")
CALLED = re.compile(r"(?<![.\w])(?<!def )([A-Za-z_]\w*)\(")


def source_of(lab: Lab) -> str:
    """What a learner sees of a lab: text and code."""
    [path] = (ROOT / "labs").glob(f"*/{lab.stem}.ipynb")
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)


@pytest.mark.parametrize("stem", list(labs()))
def test_a_hint_calls_only_what_the_lab_has(stem: str) -> None:
    lab = labs()[stem]
    source = source_of(lab)
    imported = re.findall(r"\w+", " ".join(IMPORTED.findall(source)))
    known = {*imported, *DEFINED.findall(source), *CALLED.findall(source), *vars(builtins), *METHODS}
    for check in lab.checks:
        for number, hint in enumerate(check.hints, 1):
            named = set(re.findall(r"(?<![.\w])[A-Za-z_]\w*(?![\w(])", hint))  # what it speaks of, besides calling it
            unknown = set(CALLED.findall(hint)) - known - named
            assert not unknown, f"hint {number} of {check.id} calls {', '.join(unknown)}"
