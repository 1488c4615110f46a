"""Text with the few marks that questions and messages have: code between backticks, stress between asterisks."""

from __future__ import annotations

import re
from html import escape

__all__ = ["plain", "prose"]


def prose(text: str) -> str:
    """The text as HTML."""
    with_code = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*(\w+)\*", r"<em>\1</em>", with_code)


def plain(text: str) -> str:
    """The text without marks, for labels that show none."""
    return re.sub(r"\*(\w+)\*", r"\1", text.replace("`", ""))
