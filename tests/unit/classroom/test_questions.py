"""Questions for a class, read from the cells that ask and explain them."""

from __future__ import annotations

import json
from pathlib import Path

from kafkalab.course.content import Content
from kafkalab.course.questions import Question, questions, questions_in

OPTIONS = """
led = Predict("How many does each lead?", id="02-led", options=[
    "13 on each",
    "4 or 5 on each",
])
led
"""
EXPLAINED = 'led.explain("""Because.""", answer="it is 4 or 5 on each")'
NUMBER = 'gap = Predict("How long?", id="02-gap", unit="s")\ngap'
MEASURED = 'gap.explain("Because.", measured=f"{seconds:.1f} s")'


def test_options_unit_and_the_one_that_came_true() -> None:
    assert questions_in("02_cluster_failover", [OPTIONS, EXPLAINED, NUMBER, MEASURED]) == [
        Question("02-led", "02_cluster_failover", "How many does each lead?", ("13 on each", "4 or 5 on each"), "", 1),
        Question("02-gap", "02_cluster_failover", "How long?", (), "s", None),
    ]


def test_no_option_is_right_if_the_answer_is_measured_or_names_none() -> None:
    for answer in ('answer=f"{count} on each"', 'answer="something else"', 'measured="4 or 5 on each"'):
        (question,) = questions_in("02", [OPTIONS, f'led.explain("Because.", {answer})'])
        assert question.right is None


def test_what_no_class_can_vote_on_is_left_out() -> None:
    assert questions_in("02", ['a = Predict("No id?", options=["x", "y"])', 'b = Predict("A line?", id="02-line")']) == []


def test_cells_with_magics_are_no_trouble() -> None:
    assert [one.id for one in questions_in("02", ["%%bash\necho Predict(", NUMBER])] == ["02-gap"]


def test_a_chapter_has_its_own_questions_and_those_of_its_labs(tmp_path: Path) -> None:
    for name, cell in (
        ("notebooks/02_a.ipynb", NUMBER),
        ("notebooks/03_b.ipynb", OPTIONS),
        ("labs/02_a/02_lab.ipynb", NUMBER.replace("02-gap", "02-lab-gap")),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell}]}))
    assert [(one.id, one.notebook) for one in questions(Content(tmp_path), ["02"])] == [
        ("02-gap", "02_a"),
        ("02-lab-gap", "02_lab"),
    ]
    assert [one.id for one in questions(Content(tmp_path), ["03", "02"])] == ["02-led", "02-gap", "02-lab-gap"]
