"""Write README's badges. Those for Binder and Codespaces need the repository's address, in KAFKALAB_REPOSITORY."""

from __future__ import annotations

from pathlib import Path

from kafkalab.course import find_course
from launch import binder, codespaces
from make_site import BADGES, REPOSITORY

README = Path(__file__).parent.parent / "README.md"


def with_badges(text: str, repository: str) -> str:
    """Return README's text with the badges for an address. Without one, only badges that need none."""
    # GitHub shows a README below the repository's address, so that these lead to the repository's actions.
    badges = [
        ("tests", "../../actions/workflows/test.yml/badge.svg", "../../actions/workflows/test.yml"),
        ("licence: Apache 2.0", "https://img.shields.io/badge/licence-Apache_2.0-blue", "LICENSE"),
        ("Python 3.11 to 3.13", "https://img.shields.io/badge/python-3.11_to_3.13-blue", "pyproject.toml"),
    ]
    if repository:
        first = next(name for name in find_course().content.files() if name.endswith(".ipynb"))
        badges.append(("open on Binder", "https://mybinder.org/badge_logo.svg", binder(repository, first)))
        if address := codespaces(repository):
            badges.append(("open in Codespaces", "https://img.shields.io/badge/open_in-Codespaces-blue", address))
    lines = "\n".join(f"[![{words}]({picture})]({address})" for words, picture, address in badges)
    return BADGES.sub(lambda block: f"{block[1]}\n{lines}\n{block[2]}", text)


if __name__ == "__main__":
    README.write_text(with_badges(README.read_text(encoding="utf-8"), REPOSITORY), encoding="utf-8")
