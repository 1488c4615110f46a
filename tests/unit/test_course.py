"""The engine finds the course that is installed, whoever wrote it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import nbformat
import pytest

from kafkalab.checks import find_check, find_lab, labs
from kafkalab.course import Course, find_course
from kafkalab.course.installed import GROUP
from kafkalab.errors import KafkaLabError
from kafkalab.widgets.quiz_data import load_quiz, quiz_names

CHECKS = """
from kafkalab.checks import Lab
lab = Lab("01_{0}")
lab.add_check("01_{0}", "Make {0}", hints=("Think.", "Think again."))
"""
QUIZ = """
title = "Games"
[[question]]
ask = "Is it a game?"
options = [{ right = "yes" }, { wrong = "no" }]
explanation = "It is."
"""


@pytest.fixture
def games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A course of one chapter and two labs, in a repository of its own."""
    package = tmp_path / "src/gamescourse/ch01_games"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package.parent / "course.toml").write_text('usual = "chapter 1"\n[needs]\ncurl = "chapter 1"\n')
    (package / "quiz.toml").write_text(QUIZ)
    for name in ("chess", "dice"):
        (package / f"{name}.py").write_text(CHECKS.format(name))
        facts = {"difficulty": "easy", "minutes": 5, "needs": "chapter 01"}
        write(tmp_path / f"labs/01_games/01_{name}.ipynb", name, kafkalab=facts)
    links = "[dice](../labs/01_games/01_dice.ipynb), [chess](../labs/01_games/01_chess.ipynb)"
    write(tmp_path / "notebooks/01_games.ipynb", f"First comes [chess](../labs/01_games/01_chess.ipynb).\n\n{links}")
    monkeypatch.syspath_prepend(tmp_path / "src")
    install(monkeypatch, games="gamescourse")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("gamescourse")]:
        del sys.modules[name]


def write(path: Path, text: str, **metadata: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)], metadata=metadata), path)


def install(monkeypatch: pytest.MonkeyPatch, **courses: str) -> None:
    """Let these courses be all that are installed: the names of their entry points, and of their packages."""
    entries = [EntryPoint(name, package, GROUP) for name, package in courses.items()]
    monkeypatch.setattr("kafkalab.course.installed.entry_points", lambda group: entries)
    for user in ("kafkalab.checks.lab", "kafkalab.widgets.quiz_data"):
        monkeypatch.setattr(f"{user}.find_course", find_course.__wrapped__)


def test_another_course_has_its_own_labs_checks_and_quizzes(games: Path) -> None:
    assert list(labs()) == ["01_dice", "01_chess"], "in the order of the list at the chapter's end"
    assert find_check("01_chess") is find_lab("01_chess").checks[0]
    assert quiz_names() == ["01_games"]
    assert load_quiz("01_games").title == "Games"
    with pytest.raises(KafkaLabError, match="there is no lab '02_failsafe'"):
        find_check("02_failsafe")


def test_its_notebooks_are_in_its_repository_or_in_its_package(games: Path) -> None:
    found = find_course.__wrapped__()
    assert (found.package, found.content.root, found.clone) == ("gamescourse", games, games)
    content = games / "src/gamescourse/content"
    content.mkdir()
    for folder in ("notebooks", "labs"):
        (games / folder).rename(content / folder)
    found = find_course.__wrapped__()
    assert (found.content.root, found.clone) == (content, None)
    (content / "notebooks").rename(games / "elsewhere")
    with pytest.raises(KafkaLabError, match="notebooks are missing: there are none beside the package gamescourse"):
        find_course.__wrapped__()


def test_of_several_courses_one_is_chosen(games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, games="gamescourse", kafka="kafkacourse")
    for chosen in ("", "chess"):
        monkeypatch.setenv("KAFKALAB_COURSE", chosen)
        with pytest.raises(KafkaLabError, match="KAFKALAB_COURSE should name one of the installed courses: games, kafka"):
            find_course.__wrapped__()
    monkeypatch.setenv("KAFKALAB_COURSE", "kafka")
    assert find_course.__wrapped__().package == "kafkacourse"


def test_a_lab_that_says_too_little_of_itself(games: Path) -> None:
    write(games / "labs/01_games/01_dice.ipynb", "dice", kafkalab={"minutes": 5})
    with pytest.raises(KafkaLabError, match=r"the metadata of 01_dice.ipynb has no complete `kafkalab`: .*difficulty.*needs"):
        find_course.__wrapped__().content.lab_facts("01_dice")


def test_every_name_of_the_course_is_one_that_the_engine_knows() -> None:
    """Its words for what single chapters need: `kafkalab fetch` and `kafkalab doctor` look each of them up."""
    from kafkalab.cli.fetch import more_steps
    from kafkalab.cli.findings import COMMANDS

    assert set(find_course().needs()) == {step.key for step in more_steps()} | set(COMMANDS)


def test_the_course_is_found_by_its_package() -> None:
    assert isinstance(find_course(), Course) and find_course().package == "kafkacourse"
