"""The course's first page: how far the learner is, where to go on, and the server that tells it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from jupyter_server.extension.config import ExtensionConfigManager
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.web import Application, HTTPError

from kafkalab.cli import home_server, server_end
from kafkalab.cli.home_server import HomeHandler
from kafkalab.cli.own_jupyter import SETTINGS
from kafkalab.course import Content, Workspace, find_course
from kafkalab.course.first_page import FirstPage, Left, Reference, first_page
from kafkalab.progress import LabProgress, ProgressRecord

PLAY, LAST = "notebooks/01_play.ipynb", "notebooks/02_last.ipynb"
CHESS, DICE = "labs/01_play/01_chess.ipynb", "labs/01_play/01_dice.ipynb"


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": text.splitlines(keepends=True), "metadata": {}}


def code(text: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": [text], "execution_count": None, "outputs": [], "metadata": {}}


def write(path: Path, *cells: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


@pytest.fixture
def content(tmp_path: Path) -> Content:
    """A course of two chapters. The first has two labs; one of them has two checks."""
    root = tmp_path / "course"
    links = "## What you saw\n\n[chess](../labs/01_play/01_chess.ipynb) [dice](../labs/01_play/01_dice.ipynb)"
    sections = [markdown("## 1 · Dice"), code("dice()"), markdown("## 2 · Chess"), code("chess()"), markdown(links)]
    write(root / PLAY, markdown("# Play\n\n**Time:** 30 minutes."), *sections)
    write(root / LAST, markdown("# Last\n\n**Time:** 60 minutes."), markdown("## 1 · Words"), code("words()"))
    write(root / CHESS, markdown("# Chess\n\n**Time:** about 10 minutes."), code('check("01_open")'), code('check("01_mate")'))
    write(root / DICE, markdown("# Dice\n\n**Time:** about 20 minutes."), code('check("01_dice")'))
    return Content(root)


@pytest.fixture
def folder(content: Content, tmp_path: Path) -> Path:
    Workspace(tmp_path / "mine", content).update()
    return tmp_path / "mine"


def run(path: Path, *functions: str) -> None:
    """Let a notebook be saved after some cells were run, later than every other."""
    notebook = json.loads(path.read_text())
    for number, function in enumerate(functions, start=1):
        for cell in notebook["cells"]:
            if function in "".join(cell["source"]):
                cell["execution_count"] = number
    path.write_text(json.dumps(notebook))
    latest = max(other.stat().st_mtime_ns for other in path.parents[1].rglob("*.ipynb"))
    os.utime(path, ns=(latest + 1_000_000_000,) * 2)


def passed(*checks: str) -> ProgressRecord:
    return ProgressRecord(labs={check: LabProgress(True, 1, "2026-01-01T00:00:00+00:00") for check in checks})


def goes_on(page: FirstPage) -> tuple[str, str | None, bool]:
    assert page.go_on
    return page.go_on.path, page.go_on.heading, page.go_on.begun


def test_a_new_learner_begins_at_the_beginning(content: Content, folder: Path) -> None:
    page = first_page(content, folder, ProgressRecord())
    assert [(chapter.number, chapter.title, chapter.minutes, chapter.sections) for chapter in page.chapters] == [
        ("01", "Play", 30, 2),
        ("02", "Last", 60, 1),
    ]
    assert [(lab.path, lab.title, lab.minutes, lab.passed) for lab in page.chapters[0].labs] == [
        (CHESS, "Chess", 10, False),
        (DICE, "Dice", 20, False),
    ]
    assert [(chapter.reached, chapter.finished) for chapter in page.chapters] == [(0, False), (0, False)]
    assert goes_on(page) == (PLAY, None, False)


def test_one_goes_on_in_the_section_that_was_run_last(content: Content, folder: Path) -> None:
    run(folder / PLAY, "dice()")
    page = first_page(content, folder, ProgressRecord())
    assert goes_on(page) == (PLAY, "1 · Dice", True)
    assert (page.chapters[0].reached, page.chapters[0].finished) == (1, False)
    run(folder / LAST)  # saved, but not run
    assert goes_on(first_page(content, folder, ProgressRecord())) == (PLAY, "1 · Dice", True)


def test_after_a_chapter_come_its_labs_and_then_the_next_chapter(content: Content, folder: Path) -> None:
    run(folder / PLAY, "dice()", "chess()")
    assert goes_on(first_page(content, folder, ProgressRecord())) == (CHESS, None, False)
    run(folder / CHESS, "01_open")
    assert goes_on(first_page(content, folder, passed("01_open"))) == (CHESS, None, True)
    assert goes_on(first_page(content, folder, passed("01_open", "01_mate"))) == (DICE, None, False)
    both = passed("01_open", "01_mate", "01_dice")
    page = first_page(content, folder, both)
    assert [lab.passed for lab in page.chapters[0].labs] == [True, True]
    assert goes_on(page) == (LAST, None, False)
    run(folder / LAST, "words()")
    assert first_page(content, folder, both).go_on is None
    assert goes_on(first_page(content, folder, passed("01_dice"))) == (CHESS, None, False), "a lab is left"


def test_the_notebook_that_was_run_last_counts(content: Content, folder: Path) -> None:
    run(folder / LAST, "words()")
    run(folder / PLAY, "dice()")
    assert goes_on(first_page(content, folder, ProgressRecord())) == (PLAY, "1 · Dice", True)


def test_only_what_is_there_to_look_things_up_is_linked(content: Content, folder: Path) -> None:
    assert first_page(content, folder, ProgressRecord()).references == ()
    (content.root / "docs").mkdir()
    for name in ("glossary.md", "architecture.md"):
        (content.root / "docs" / name).write_text("# Words")
    assert first_page(content, folder, ProgressRecord()).references == ()  # JupyterLab couldn't open it
    Workspace(folder, content).update()
    assert [path.name for path in (folder / "docs").iterdir()] == ["glossary.md"]
    assert first_page(content, folder, ProgressRecord()).references == (Reference("docs/glossary.md", "Glossary"),)


def test_what_was_left_alone_and_what_is_wrong_is_there(content: Content, folder: Path) -> None:
    assert not first_page(content, folder, ProgressRecord()).left
    (folder / PLAY).write_text((folder / PLAY).read_text().replace("dice()", "dice(2)"))
    write(content.root / PLAY, markdown("# Play, anew"))
    Workspace(folder, content).update()
    page = first_page(content, folder, ProgressRecord(), ["Two and two are five."])
    assert page.left == (Left(PLAY, "the course has a newer one"),) and page.problems == ("Two and two are five.",)


def test_notebooks_that_are_gone_or_broken_were_not_run(content: Content, folder: Path) -> None:
    (folder / PLAY).unlink()
    (folder / LAST).write_text("no notebook")
    page = first_page(content, folder, ProgressRecord())
    assert [chapter.title for chapter in page.chapters] == ["Play", "Last"]
    assert goes_on(page) == (PLAY, None, False)


def test_every_chapter_and_lab_of_this_course_says_its_minutes(tmp_path: Path) -> None:
    content = find_course().content
    page = first_page(content, tmp_path, ProgressRecord())
    assert len(page.chapters) == 13
    assert [Path(lab.path).stem for chapter in page.chapters for lab in chapter.labs] == content.lab_stems()
    for chapter in page.chapters:
        assert chapter.minutes and chapter.title and chapter.sections, chapter.path
        assert all(lab.minutes and lab.title for lab in chapter.labs), chapter.path
    assert json.loads(json.dumps(page.as_json()))["go_on"]["path"] == page.chapters[0].path


def test_jupyter_finds_the_servers_extension_where_the_course_points_it() -> None:
    found = ExtensionConfigManager(read_config_path=[str(SETTINGS)]).get_jpserver_extensions()
    assert found == {home_server.__name__: True, server_end.__name__: True}
    for module in (home_server, server_end):
        assert module._jupyter_server_extension_points() == [{"module": module.__name__}]


def test_the_server_tells_the_page_to_those_who_may_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "progress"))
    web_app = Application([], base_url="/base/")
    home_server._load_jupyter_server_extension(SimpleNamespace(web_app=web_app))
    line = RequestStartLine("GET", "/base/kafkalab/home", "HTTP/1.1")
    request = HTTPServerRequest(start_line=line, headers=HTTPHeaders({"Host": "localhost"}), connection=Mock())
    handler = web_app.find_handler(request).handler_class
    assert handler is HomeHandler

    asked = Mock(spec=HomeHandler, current_user="learner")
    asyncio.run(HomeHandler.get(asked))
    [page] = asked.finish.call_args.args
    assert page["go_on"] == {
        "path": "notebooks/00_start_here.ipynb",
        "title": "Start a Kafka cluster of your own",
        "heading": None,
        "begun": False,
    }

    stranger = Mock(spec=HomeHandler, current_user=None, request=request)
    stranger.get_login_url.side_effect = PermissionError
    with pytest.raises((PermissionError, HTTPError)):
        asyncio.run(HomeHandler.get(stranger))
    stranger.finish.assert_not_called()
