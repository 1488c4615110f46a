"""Words for a reader: marks in questions and messages (backticks for code, asterisks for emphasis), numbers with nouns."""

from __future__ import annotations

import re
from html import escape

__all__ = ["counted", "prose"]


def prose(text: str) -> str:
    """Return the text as HTML."""
    with_code = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*(\w+)\*", r"<em>\1</em>", with_code)


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
