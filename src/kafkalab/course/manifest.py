"""The workspace's records about the files copied into it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kafkalab.course.versions import Version
from kafkalab.files import write_atomically

__all__ = ["GONE", "Entry", "load", "save"]

_FORMAT = 1

GONE = ""
"""`Entry.seen` of a file that the course no longer has, and that the learner has changed."""


@dataclass(frozen=True)
class Entry:
    """The record about one file.

    Attributes
    ----------
    copied, sources
        `Version.digest` and `Version.sources` of the copied version. None for a file that was there before and belongs
        to the learner.
    seen
        `Version.digest` of the newest course version that the learner was told about, or `GONE`.
    """

    copied: str | None
    sources: str | None
    seen: str

    @classmethod
    def of(cls, version: Version) -> Entry:
        """Return the entry of a file that was just copied."""
        return cls(version.digest, version.sources, version.digest)


def load(path: Path) -> dict[str, Entry]:
    """Read the entries by file name. If the file is missing or damaged, there are none."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["format"] != _FORMAT:
            return {}
        return {str(name): Entry(**entry) for name, entry in stored["files"].items()}
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):  # not JSON, or JSON of another shape
        return {}


def save(path: Path, entries: dict[str, Entry]) -> None:
    """Store the entries in one step."""
    stored = {"format": _FORMAT, "files": {name: asdict(entry) for name, entry in sorted(entries.items())}}
    write_atomically(path, json.dumps(stored, indent=1))
