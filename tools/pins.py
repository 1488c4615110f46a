"""Writes requirements/pins.txt: the lock's versions without its hashes.

conda hands its pip section to pip as one file, and pip takes no package from a folder (this one) in a file with hashes.
"""

from __future__ import annotations

from pathlib import Path

REQUIREMENTS = Path(__file__).parent.parent / "requirements"
HEADER = "# Written by `make lock`: the versions of course.lock, for conda, without hashes.\n"


def pins(lock: str) -> str:
    """The lines of a lock that name a version, with their markers."""
    lines = (line.removesuffix("\\").strip() for line in lock.splitlines() if line[:1].isalnum())
    return HEADER + "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    (REQUIREMENTS / "pins.txt").write_text(pins((REQUIREMENTS / "course.lock").read_text()))
