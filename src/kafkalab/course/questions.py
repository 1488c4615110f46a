"""The course's predictions as questions for a class: what a poll shows, and which option came true.

Each one is read from its cells: ``Predict("…", id="02-gap", options=[…])``, and the ``explain`` of the same variable.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalab.course.content import Content
from kafkalab.course.versions import sources
from kafkalab.marks import plain

__all__ = ["Question", "option_in", "questions", "questions_in"]


@dataclass(frozen=True)
class Question:
    """A prediction that a class can vote on.

    Attributes
    ----------
    id
        Its short id, which events and releases name. It stays when the words change.
    notebook
        The stem of the notebook that asks it: ``02_cluster_failover``, or a lab's.
    text
        The question, with backticks for code.
    options
        The options, in order. Empty if it asks for a number.
    unit
        The unit of the number.
    right
        The place of the option that came true, from 0. None if the explanation names none, or was measured.
    """

    id: str
    notebook: str
    text: str
    options: tuple[str, ...] = ()
    unit: str = ""
    right: int | None = None


def questions(content: Content, chapters: Sequence[str]) -> list[Question]:
    """Return the questions of chapters (``02``) in the order of the notebooks' cells: each chapter's own, then its labs'.

    Predictions without an id, or answered with a line of text, aren't among them: no class votes on those.
    """
    found: list[Question] = []
    for chapter in chapters:
        for name, path in content.files().items():
            if name.endswith(".ipynb") and path.name.startswith(f"{chapter}_"):
                found += questions_in(path.stem, [text for kind, text in sources(path.read_bytes()) or [] if kind == "code"])
    return found


def questions_in(notebook: str, cells: Sequence[str]) -> list[Question]:
    """Return the questions that a notebook's code cells ask, in order. See `questions`."""
    trees = [tree for cell in cells if (tree := _tree(cell)) is not None]
    answers = {variable: answer for tree in trees for variable, answer in _answers(tree)}
    found = []
    for tree in trees:
        for variable, arguments in _asked(tree):
            options, unit = tuple(arguments.get("options", ())), arguments.get("unit", "")
            if arguments.get("id") and (options or unit):
                came_true = option_in(answers.get(variable, ""), options)
                right = None if came_true is None else options.index(came_true)
                found.append(Question(arguments["id"], notebook, arguments["question"], options, unit, right))
    return found


def option_in(answer: str, options: Sequence[str]) -> str | None:
    """Return the option that an answer names, whole or with more words around it, or None if it names no single one.

    A number that was measured names none: whether 7 s is near enough to 1.9 s is nothing to count.
    """
    said = plain(answer).casefold()
    texts = {option: plain(option).casefold() for option in options}
    exact = [option for option, text in texts.items() if text == said]
    named = [option for option, text in texts.items() if said and (_has(said, text) or _has(text, said))]
    return (exact or named)[0] if len(exact or named) == 1 else None


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _tree(cell: str) -> ast.Module | None:
    if "Predict(" not in cell and ".explain(" not in cell:
        return None
    try:
        return ast.parse(cell)
    except SyntaxError:  # a magic
        return None


def _asked(tree: ast.Module) -> Iterator[tuple[str, dict[str, Any]]]:
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(variable)], ast.Call(ast.Name("Predict"), [ast.Constant(str() as question)]) as call):
                yield variable, {"question": question, **_literals(call)}


def _answers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name(variable), "explain")):
                if isinstance(answer := _literals(node).get("answer"), str):
                    yield variable, answer


def _literals(call: ast.Call) -> dict[str, Any]:
    """Return a call's keyword arguments that are literals. An f-string is none: it's measured when the cell runs."""
    found = {}
    for keyword in call.keywords:
        try:
            found[keyword.arg or ""] = ast.literal_eval(keyword.value)
        except ValueError:
            continue
    return found
