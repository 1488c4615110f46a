"""What a workspace remembers about the files that were copied into it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kafkalab.course.versions import Version

__all__ = ["Entry", "load", "save"]

_FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """What is known about one file.

    Attributes
    ----------
    copied, sources
        `Version.digest` and `Version.sources` of what was copied; None for a file that was there before and is the
        learner's own.
    seen
        `Version.digest` of the newest version in the course that the learner has been told about.
    """

    copied: str | None
    sources: str | None
    seen: str

    @classmethod
    def of(cls, version: Version) -> Entry:
        """The entry of a file that was copied just now."""
        return cls(version.digest, version.sources, version.digest)


def load(path: Path) -> dict[str, Entry]:
    """The entries by the files' names. Whoever loses them, or finds them damaged, starts with none."""
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
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(json.dumps(stored, indent=1), encoding="utf-8")
    draft.replace(path)
