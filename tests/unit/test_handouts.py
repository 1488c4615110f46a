"""Tasks on paper have everything that a chapter asks for and give nothing away; answers have it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

import make_handouts
from kafkalab.checks import checks
from kafkalab.course import Content
from kafkalab.course.predictions import asked_in
from kafkalab.widgets.quiz_data import load_quiz
from make_handouts import handout

ROOT = Path(__file__).parents[2]
CHAPTER = "02_cluster_failover"


@pytest.fixture(scope="module")
def content() -> Content:
    return Content(ROOT)


def words(page: str) -> str:
    """A page's text, without spaces: HTML breaks lines elsewhere."""
    return squeezed(html.unescape(re.sub(r"<[^>]+>", "", page.partition("<body>")[2])))


def squeezed(text: str) -> str:
    return re.sub(r"[\s`*]+", "", text)


def cells(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_bytes())["cells"]]


def answers_in(content: Content, chapter: str) -> set[str]:
    """Lines of code that only solutions have, and sentences that only explanations have."""
    found = set()
    labs = "\n".join(source for path in (content.root / "labs" / chapter).glob("*.ipynb") for source in cells(path))
    for path in (content.root / "solutions" / chapter).glob("*.ipynb"):
        for source in cells(path):
            for part in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source, re.DOTALL):
                found.update(line.strip() for line in part.split("\n") if len(line) > 40 and line.strip() not in labs)
            for part in re.findall(r"^\*\*Explain\.\*\* (.+)$|explain\(\"\"\"\n(.+)$", source, re.MULTILINE):
                found.add("".join(part)[:80])
    return found


def test_tasks_have_everything_that_the_chapter_asks_for(content: Content) -> None:
    page = handout(content, CHAPTER, answers=False)
    text = words(page.html)
    assert page.name == "02-tasks" and squeezed(make_handouts.edition()) in text
    assert "8labs,about315minutes" in text and "Name" in text
    wanted = [requirement.says for check in checks("02").values() for requirement in check.requirements]
    wanted += [check.title for check in checks("02").values()]
    for question in load_quiz(CHAPTER).questions:
        wanted += [question.ask, *(option.text for option in question.options)]
    for path in (ROOT / f"notebooks/{CHAPTER}.ipynb", *(ROOT / f"labs/{CHAPTER}").glob("*.ipynb")):
        for asked in (asked for source in cells(path) for asked in asked_in(source)):
            wanted += [asked.question, *asked.options]
    assert len(wanted) > 150
    assert not [one for one in wanted if squeezed(one) not in text]
    assert page.html.count('<div class="code-lines">') == sum(
        "# YOUR CODE HERE" in source and "hint(" not in source
        for path in (ROOT / f"labs/{CHAPTER}").glob("*.ipynb") for source in cells(path)
    )  # fmt: skip


def test_no_tasks_give_answers_away_and_answers_have_them(content: Content) -> None:
    found = 0
    for chapter in content.chapter_titles:
        tasks = words(handout(content, chapter, answers=False).html)
        answers = words(handout(content, chapter, answers=True).html)
        for answer in answers_in(content, chapter):
            assert squeezed(answer) not in tasks, f"{chapter}: {answer}"
            assert squeezed(answer) in answers, f"{chapter}: {answer}"
            found += 1
        for question in load_quiz(chapter).questions:
            assert squeezed(question.explanation) in answers and squeezed(question.explanation) not in tasks
        assert "Whathappened:" not in tasks and "SOLUTION" not in answers
    assert found > 500


def test_a_page_is_useful_alone(content: Content) -> None:
    """It loads nothing, and links lead to addresses only."""
    for answers in (False, True):
        page = handout(content, CHAPTER, answers=answers).html
        assert not re.findall(r'<(?:img|script|link)\b|src="|@import|url\(', page)
        assert all(link.startswith("http") for link in re.findall(r'href="([^"]*)"', page))
        assert "size: A4" in page


def test_right_options_are_marked_in_answers_only(content: Content) -> None:
    right = sum(option.right for question in load_quiz(CHAPTER).questions for option in question.options)
    assert handout(content, CHAPTER, answers=True).html.count('<li class="right">') == right
    assert 'class="right"' not in handout(content, CHAPTER, answers=False).html


def test_explanations_become_lines() -> None:
    text = "**Do.** Look.\n\n**Explain.** Secret.\n\nSecret, too.\n\n## 2 · Go on\n\nMore.\n\n## What you saw\n\nSecret.\n\n## On your own\n\nTry."
    page = make_handouts._without_answers(text)
    assert "Secret" not in page and page.count('<div class="lines">') == 2
    assert all(word in page for word in ("Look.", "2 · Go on", "More.", "What did you see?", "Try."))


def test_without_a_browser_it_writes_html_and_says_so(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_handouts, "ROOT", tmp_path)
    monkeypatch.setattr(make_handouts, "handouts", lambda _: [make_handouts.Handout("02-tasks", "<p>")])
    monkeypatch.setattr(make_handouts, "browser_program", lambda: None)
    make_handouts.main()
    assert [path.name for path in (tmp_path / "build/handouts").iterdir()] == ["02-tasks.html"]
    assert "as HTML only: there's no Chromium to print them. KAFKALAB_CHROMIUM names one." in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setenv("KAFKALAB_CHROMIUM", "/some/browser")
    assert make_handouts.browser_program() == "/some/browser"


def test_without_solutions_there_are_tasks_only(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Content, "solutions", lambda self: {})
    monkeypatch.setattr(Content, "chapter_titles", {CHAPTER: "Break a cluster"})
    assert [page.name for page in make_handouts.handouts(Content(ROOT))] == ["02-tasks"]
