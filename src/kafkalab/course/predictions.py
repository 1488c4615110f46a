"""Find the predictions that the course's notebooks ask for."""

from __future__ import annotations

import ast

from kafkalab.course.content import Content
from kafkalab.course.versions import sources

__all__ = ["chapters_by_question"]


def chapters_by_question(content: Content) -> dict[str, str]:
    """Return the number of the chapter (``02``) that asks each prediction, in its notebook or in one of its labs."""
    found = {}
    for name, path in content.files().items():
        if name.endswith(".ipynb"):
            for kind, text in sources(path.read_bytes()) or []:
                if kind == "code" and "Predict(" in text:
                    found.update(dict.fromkeys(_questions(text), path.name[:2]))
    return found


def _questions(cell: str) -> list[str]:
    try:
        nodes = list(ast.walk(ast.parse(cell)))
    except SyntaxError:  # a magic
        return []
    asked = [node.args[0] for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Predict" and node.args]
    return [node.value for node in asked if isinstance(node, ast.Constant) and isinstance(node.value, str)]
