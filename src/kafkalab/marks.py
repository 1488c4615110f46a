"""Marks in the course's words: backticks for code, asterisks for emphasis."""

from __future__ import annotations

import re

__all__ = ["plain"]


def plain(text: str) -> str:
    """Return the text without marks, for what can't show them."""
    return re.sub(r"\*(\w+)\*", r"\1", text.replace("`", ""))
