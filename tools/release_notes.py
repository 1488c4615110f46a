"""Print what CHANGELOG.md says about a release: ``release_notes.py v1.2.3`` with the release's tag.

Ends with an error if the tag isn't the version of pyproject.toml, of the pipeline and of CITATION.cff: then the files of the release
would have another version than its name.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def versions(root: Path) -> dict[str, str]:
    """Return the version that each file gives the course."""
    projects = {name: tomllib.loads((root / name).read_text()) for name in ("pyproject.toml", "pipeline/pyproject.toml")}
    cited = re.search(r"^version: *(\S+)", (root / "CITATION.cff").read_text(), re.MULTILINE)
    return {
        **{name: project["project"]["version"] for name, project in projects.items()},
        "CITATION.cff": cited[1] if cited else "none",
    }


def notes(root: Path, tag: str) -> str:
    """Return the section of the changelog for a tag.

    Raises
    ------
    ValueError
        If a file has another version, or the changelog has no section for this one.
    """
    version = tag.removeprefix("v")
    others = {name: found for name, found in versions(root).items() if found != version}
    if others:
        found = ", ".join(f"{name} has {other}" for name, other in others.items())
        raise ValueError(f"The tag is {tag}, but {found}. Set the version there, or tag another commit.")
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md has no section [{version}]. Move there what [Unreleased] says.")
    return section[1].strip()


if __name__ == "__main__":
    try:
        print(notes(ROOT, sys.argv[1]))
    except ValueError as error:
        sys.exit(str(error))
