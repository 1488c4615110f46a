"""The predictions and lab cards of the course's notebooks: what the widgets take for granted about their use."""

from __future__ import annotations

import ast
import symtable
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from kafkalab.course import find_course
from kafkalab.course.predictions import chapters_by_question
from notebook_support import NOTEBOOKS, cells_of, code_cells

# These chapters and their labs ask with forms. The others still ask in plain text.
WITH_FORMS = [path for path in NOTEBOOKS if path.name[:2] in ("00", "02", "05", "09", "10", "11", "12")]


def calls(cell: dict) -> Iterator[tuple[str, ast.Call]]:
    """What a cell calls by a bare name or as a method of one, in order: ``Predict``, ``gap.explain``."""
    source = "".join(cell["source"])
    if "Predict(" in source or ".explain(" in source or "LabCard(" in source:  # these have no magics
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func), node


def predictions(path: Path) -> dict[str, Any]:
    """Question of each prediction, by its variable."""
    found = {}
    for cell in code_cells(path):
        for statement in ast.parse("".join(cell["source"])).body if "Predict(" in "".join(cell["source"]) else []:
            match statement:
                case ast.Assign([ast.Name(variable)], ast.Call(ast.Name("Predict"), [ast.Constant(question)])):
                    assert variable not in found, f"{path.name} has two predictions called {variable}"
                    found[variable] = question
    return found


def names_set_by(cell: dict) -> set[str]:
    """The names that a cell binds at the top level."""
    source = TransformerManager().transform_cell("".join(cell["source"]))
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_other_cell_takes_the_name_of_a_prediction(path: Path) -> None:
    """It's asked again when it is explained, and when somebody goes back."""
    asked = predictions(path)
    set_by = Counter(name for cell in code_cells(path) for name in names_set_by(cell) & asked.keys())
    assert set_by == dict.fromkeys(asked, 1)


def test_no_two_predictions_of_the_course_ask_the_same() -> None:
    asked = Counter(question for path in NOTEBOOKS for question in predictions(path).values())
    assert asked and max(asked.values()) == 1, asked.most_common(1)


def test_the_chapter_of_each_prediction_is_known() -> None:
    asked = {question: path.name[:2] for path in NOTEBOOKS for question in predictions(path).values()}
    assert chapters_by_question(find_course().content) == asked


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_prediction_is_explained_once_below_in_a_folded_cell(path: Path) -> None:
    open_, explained = set(), []
    for cell in code_cells(path):
        for name, _ in calls(cell):
            if name.endswith(".explain"):
                assert cell["metadata"]["jupyter"]["source_hidden"], f"{name} stands in sight"
                assert name.removesuffix(".explain") in open_, f"{name} has no prediction above it"
                explained.append(name.removesuffix(".explain"))
        open_ |= {variable for variable in predictions(path) if f"{variable} = Predict(" in "".join(cell["source"])}
    assert sorted(explained) == sorted(predictions(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lab_has_the_card_of_its_own_name(path: Path) -> None:
    for cell in code_cells(path):
        for name, call in calls(cell):
            if name == "LabCard":
                assert ast.literal_eval(call.args[0]) == path.stem


@pytest.mark.parametrize("path", [path for path in WITH_FORMS if path.parent.name != "notebooks"], ids=lambda path: path.stem)
def test_a_lab_with_forms_has_a_card(path: Path) -> None:
    assert [name for cell in code_cells(path) for name, _ in calls(cell)].count("LabCard") == 1


@pytest.mark.parametrize("path", WITH_FORMS, ids=lambda path: path.stem)
def test_a_notebook_with_forms_asks_nothing_in_plain_text(path: Path) -> None:
    assert [text for cell in cells_of(path, "markdown") if "**Predict.**" in (text := "".join(cell["source"]))] == []
