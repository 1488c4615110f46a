"""A release has the changelog's section as its text, and the version of its tag."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from release_notes import notes, versions

ROOT = Path(__file__).parents[2]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """What says a version, in a folder of its own."""
    for name in ("pyproject.toml", "pipeline/pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\nNot yet.\n\n## [1.2.0] - 2026-11-27\n\n### Added\n\n- A film.\n\n## [1.1.0]\n\nOld.\n"
    )
    return tmp_path


def test_it_has_the_section_of_its_version(course: Path) -> None:
    assert notes(course, "v1.2.0") == "### Added\n\n- A film."


def test_a_tag_must_be_the_version_everywhere(course: Path) -> None:
    (course / "CITATION.cff").write_text("version: 1.1.0\n")
    with pytest.raises(ValueError, match=re.escape("The tag is v1.2.0, but CITATION.cff has 1.1.0. Set the version there")):
        notes(course, "v1.2.0")


def test_the_changelog_must_have_a_section(course: Path) -> None:
    (course / "CHANGELOG.md").write_text("## [Unreleased]\n\n- A film.\n")
    with pytest.raises(ValueError, match=re.escape("CHANGELOG.md has no section [1.2.0]. Move there what [Unreleased] says.")):
        notes(course, "v1.2.0")


def test_the_course_has_one_version() -> None:
    assert len(set(versions(ROOT).values())) == 1
