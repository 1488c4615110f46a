"""A class as an instructor holds it: three learners in three browsers, a poll, a lab, its hand-in and its marks."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import make_slides
from desk_support import Course, Troubles, end_kernels, open_notebook, panel_of, run_cell, running_course
from kafkalab.waiting import wait_until
from support import PATIENCE

CHAPTER = "02_cluster_failover"
LAB = "02_failsafe"
NOTEBOOK = f"labs/{CHAPTER}/{LAB}.ipynb"
ROOT = Path(__file__).parents[2]
FIRST, THREE = "broker 1, whose address it has", "all three brokers of the cluster"  # of a question's options
KAFKALAB = Path(sys.executable).with_name("kafkalab")
WHOLE_CHAPTER = 600_000  # milliseconds: three of them at once

pytestmark = [pytest.mark.browser, pytest.mark.cluster, pytest.mark.at_length, pytest.mark.timeout(2400)]


@dataclass(frozen=True)
class Class:
    """What ``kafkalab teach`` prints."""

    code: str
    board: str
    wall: str
    opened_after: str


@dataclass(frozen=True)
class Learner:
    """A workspace, a seat and a browser."""

    course: Course
    page: Page
    troubles: Troubles

    def open(self, notebook: str) -> None:
        # In a layout of its own: one that brings back another notebook may do so later, and menus are about the one in front.
        open_notebook(self.page, self.troubles, self.course.address(notebook, Path(notebook).stem))

    def run_all(self) -> None:
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    def save(self) -> None:
        """Save the notebook in front: a page with changes asks before it's left."""
        self.page.keyboard.press("Control+s")
        expect(self.page.locator(".jp-mod-dirty")).to_have_count(0)

    def wait_for_last_cell(self) -> None:
        prompt = self.last_cell().locator(".jp-InputPrompt")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=WHOLE_CHAPTER)
        assert self.page.locator("[data-mime-type*=error]").count() == 0

    def last_cell(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").last


@contextmanager
def running_class(folder: Path, *chapters: str) -> Iterator[Class]:
    log = folder / "teach.log"
    with log.open("w") as output:
        teach = subprocess.Popen(
            [KAFKALAB, "teach", *chapters], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    said = re.compile(r"open after (\d+ s).*kafkalab join (\S+).*?(http\S+).*?(http\S+)", re.DOTALL)

    def runs() -> None:
        assert teach.poll() is None, log.read_text()

    try:
        found = wait_until(
            lambda: said.search(log.read_text()), 2 * PATIENCE, "the class", unless=runs, last_seen=log.read_text
        )
        yield Class(found[2], found[3], found[4], found[1])
    finally:
        teach.terminate()
        teach.wait(PATIENCE)
    assert "The class has ended." in log.read_text()


def join(folder: Path, code: str) -> None:
    environment = {**os.environ, "KAFKALAB_PROGRESS": str(folder / "progress")}
    subprocess.run([KAFKALAB, "join", "--yes", code], env=environment, check=True, capture_output=True, timeout=PATIENCE)


def vote(learner: Learner, cell: int, option: str, button: str) -> None:
    question = learner.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").nth(cell)
    question.locator("label", has_text=option).click()
    question.get_by_role("button", name=button).click()


@pytest.fixture
def take(tmp_path: Path) -> Callable[[Page, str], None]:
    """Take a picture, to look at: into the folder that KAFKALAB_PICTURES names."""
    pictures = Path(os.environ.get("KAFKALAB_PICTURES") or tmp_path / "pictures")

    def take(page: Page, name: str) -> None:
        page.screenshot(path=str(pictures / f"{name}.png"))

    return take


def test_three_learners_go_through_a_chapter_and_hand_in(
    browser: Browser, tmp_path: Path, take: Callable[[Page, str], None], measured: Callable[[str], None]
) -> None:
    with ExitStack() as stack:
        room = stack.enter_context(running_class(tmp_path, "02"))
        measured(f"kafkalab teach: the class is open after {room.opened_after}")
        board, wall = browser.new_page(viewport={"width": 1280, "height": 900}), browser.new_page()
        board.goto(room.board)
        wall.goto(room.wall)

        learners = []
        for name in ("first", "second", "third"):
            (folder := tmp_path / name).mkdir()
            course = stack.enter_context(running_course(folder))
            join(folder, room.code)
            page = browser.new_page(viewport={"width": 1440, "height": 900}, extra_http_headers=course.login)
            learners.append(Learner(course, page, Troubles()))
        for learner in learners:
            learner.open(f"notebooks/{CHAPTER}.ipynb")
        expect(board.locator("#joined")).to_have_text("3 seats joined")

        # Predict, poll, reveal: the chapter's first question. The measurement is in its third code cell.
        for learner in learners:
            run_cell(learner.page, 0)
            run_cell(learner.page, 1)
        board.get_by_role("button", name="Ask: You give a client").click()
        for learner, option in zip(learners, (FIRST, THREE, FIRST), strict=True):
            vote(learner, 1, option, "Predict")
        expect(board.locator("#poll .counts")).to_contain_text("first vote: 3 of 3")
        take(board, "board-first-vote")
        take(learners[0].page, "learner-has-voted")
        board.get_by_role("button", name="Discuss").click()
        take(wall, "wall-discussion")
        expect(learners[0].page.get_by_role("button", name="Predict").first).to_be_disabled()
        board.get_by_role("button", name="Vote again").click()
        for learner in learners:
            vote(learner, 1, THREE, "Vote again")
        expect(board.locator("#poll .counts")).to_contain_text("second vote: 3 of 3")
        board.get_by_role("button", name="Run the cell").click()
        for learner in learners:
            run_cell(learner.page, 2)
            explanation = run_cell(learner.page, 3)
            expect(explanation).to_contain_text("Your instructor opens the explanation")
        expect(board.locator("#poll .counts")).to_contain_text("have run the cell: 3 of 3")
        take(board, "board-have-run")
        take(learners[1].page, "learner-waits")
        board.get_by_role("button", name="Reveal", exact=True).click()
        for learner in learners:
            waits = learner.page.locator(".jp-CodeCell").nth(3)
            expect(waits).to_contain_text(f"You said {THREE}")
        take(wall, "wall-revealed")
        take(learners[1].page, "learner-revealed")
        board.get_by_role("button", name="Take it off the wall").click()

        # One calls for help; the rest of the questions stay without a poll.
        panel = panel_of(learners[2].page, CHAPTER)
        panel.get_by_role("button", name="Help").click()
        expect(board.locator("#help li")).to_contain_text(CHAPTER)
        take(board, "board-help")
        take(learners[2].page, "learner-calls")
        panel.get_by_role("button", name="Help").click()
        expect(board.locator("#help li")).to_have_count(0)
        board.get_by_role("button", name="Open all the others").click()

        for learner in learners:
            learner.run_all()
        for learner in learners:
            learner.wait_for_last_cell()
            learner.save()
        take(learners[0].page, "learner-end-of-chapter")

        # The lab, solved by all, as they'd hand it in.
        submissions = tmp_path / "submissions"
        submissions.mkdir()
        for learner in learners:
            end_kernels(learner.page, learner.course)  # one notebook at a time, as the page for teachers advises
            shutil.copyfile(ROOT / f"solutions/{CHAPTER}/{LAB}.ipynb", learner.course.workspace / NOTEBOOK)
            learner.open(NOTEBOOK)
            learner.run_all()
        for place, learner in enumerate(learners):
            passed = panel_of(learner.page, LAB).get_by_text("Lab passed").first
            expect(passed).to_be_visible(timeout=WHOLE_CHAPTER)  # the file brings the numbers of cells that ran elsewhere
            learner.save()
            shutil.copyfile(learner.course.workspace / NOTEBOOK, submissions / f"learner-{place}.ipynb")
        expect(board.locator("#seats tbody tr").filter(has_text=LAB)).to_have_count(3)
        take(board, "board-lab")
        take(wall, "wall-lab")
        take(learners[0].page, "learner-lab")

        decks = make_slides.make_slides(tmp_path / "slides")
        wall.goto(next(deck for deck in decks if deck.stem.startswith(CHAPTER[:2])).as_uri())
        take(wall, "slides")
        for learner in learners:
            assert not learner.troubles.of_the_page()
            end_kernels(learner.page, learner.course)
            learner.page.close()

    marks = tmp_path / "marks.csv"
    graded = [KAFKALAB, "grade", submissions, "--lab", LAB, "--output", marks, "--jobs", "2"]
    subprocess.run(graded, check=True, capture_output=True, timeout=600)
    with marks.open() as rows:
        for row in csv.DictReader(rows):
            assert row["met"] == row["of"] != "0", row
