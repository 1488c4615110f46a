"""Hand-outs printed on A4."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from kafkalab.course import Content
from make_handouts import handout, print_all, write

pytestmark = pytest.mark.browser

CONTENT = Content(Path(__file__).parents[2])
WIDTH = 658  # pixels: 174 mm, what A4 leaves between its margins


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write([handout(CONTENT, "00_start_here", answers=answers) for answers in (False, True)], tmp_path / "handouts")
    return tmp_path / "handouts"


def test_they_are_printed_as_pdf(folder: Path) -> None:
    program = os.environ.get("KAFKALAB_CHROMIUM") or shutil.which("chromium")
    if not program:
        pytest.skip("there is no Chromium")
    print_all(folder, program)
    for name in ("00-tasks", "00-answers"):
        data = (folder / f"{name}.pdf").read_bytes()
        assert data.startswith(b"%PDF-")
        assert re.search(rb"/MediaBox \[0 0 59[45]\.\d+ 84[12]\.\d+\]", data), "A4"
        assert len(re.findall(rb"/Type /Page\b", data)) >= 4


def test_nothing_is_cut_off(browser: Browser, folder: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": 900})
    page.emulate_media(media="print")
    wide = (
        "() => [...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth).length"
    )
    for path in folder.glob("*.html"):
        page.goto(path.as_uri())
        assert page.evaluate("() => document.documentElement.scrollWidth") <= WIDTH
        assert page.evaluate(wide) == 0
    page.close()


@pytest.mark.at_length
def test_nothing_of_any_chapter_is_cut_off(browser: Browser, tmp_path: Path) -> None:
    pages = [handout(CONTENT, chapter, answers=answers) for chapter in CONTENT.chapter_titles for answers in (False, True)]
    write(pages, tmp_path / "handouts")
    test_nothing_is_cut_off(browser, tmp_path / "handouts")
