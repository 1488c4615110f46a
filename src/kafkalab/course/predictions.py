"""Find the predictions that the course's notebooks ask for."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from kafkalab.course.content import Content
from kafkalab.course.versions import sources

__all__ = ["Asked", "asked_in", "chapters_by_question"]


@dataclass(frozen=True)
class Asked:
    """A prediction that a cell asks for: the question, and its options, or none if one types an answer."""

    question: str
    options: tuple[str, ...]


def chapters_by_question(content: Content) -> dict[str, str]:
    """Return the number of the chapter (``02``) that asks each prediction, in its notebook or in one of its labs."""
    found = {}
    for name, path in content.files().items():
        if name.endswith(".ipynb"):
            for kind, text in sources(path.read_bytes()) or []:
                if kind == "code":
                    found.update({asked.question: path.name[:2] for asked in asked_in(text)})
    return found


def asked_in(cell: str) -> list[Asked]:
    """Return the predictions that a code cell asks for, as far as they stand in it as they are."""
    if "Predict(" not in cell:
        return []
    try:
        nodes = list(ast.walk(ast.parse(cell)))
    except SyntaxError:  # a magic
        return []
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Predict" and node.args]
    return [Asked(question, _options(call)) for call in calls if isinstance(question := _value(call.args[0]), str)]


def _options(call: ast.Call) -> tuple[str, ...]:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "options"), None)
    return tuple(_value(given) or ()) if given is not None else ()


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # it's computed
        return None
