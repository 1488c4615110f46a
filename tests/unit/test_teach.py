"""The pages for teachers follow the chapters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkalab.course.sections import sections
from notebook_support import CHAPTERS

ROOT = Path(__file__).parents[2]
TEACH = ROOT / "docs/teach"
ROW = re.compile(r"^\| (\d+ · .+?) +\| (\d+) \| (core|extra|skip-safe) \|", re.MULTILINE)


def page_of(chapter: Path) -> str:
    return (TEACH / f"{chapter.stem.replace('_', '-')}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_page_has_each_section_with_its_mark_and_its_minutes_add_up(chapter: Path) -> None:
    page = page_of(chapter)
    rows = [(name.replace("`", ""), int(minutes), mark) for name, minutes, mark in ROW.findall(page)]
    assert rows == [(section.heading.replace("`", ""), section.minutes, section.mark) for section in sections(chapter)]
    whole, core = (int(number) for number in re.findall(r"(\d+) minutes", page)[:2])
    assert (whole, core) == (sum(row[1] for row in rows), sum(row[1] for row in rows if row[2] == "core"))
    assert f"| {whole} | {core} | [{chapter.stem.replace('_', '-')}]" in (TEACH / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(TEACH.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_links_to_what_is_there(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")) if "://" not in link]
    assert links and not [link for link in links if not (page.parent / link).exists()]
