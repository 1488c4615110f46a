"""Text without what is this machine's own, for stored outputs."""

from __future__ import annotations

import re

__all__ = ["CODES", "scrub"]

# Colour codes and carriage returns mean something to a terminal only; addresses and home folders are this machine's.
CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\r")
_ADDRESSES = re.compile(r"\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d+\b")
_FOLDERS = re.compile(r"(?<![\w.])/(?:tmp|home|root|Users|var|work)/[^\s:'\"]*")


def scrub(line: str, address: str = "<broker>") -> str:
    """A line without codes for a terminal, addresses and folders."""
    return _FOLDERS.sub("<folder>", _ADDRESSES.sub(address, CODES.sub("", line)))
