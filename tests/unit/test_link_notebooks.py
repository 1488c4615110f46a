"""Links between notebooks: tables of contents, previous and next, labs where they belong, places to stop."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import link_notebooks
from kafkalab.course import find_course
from kafkalab.course.outline import outline
from link_notebooks import NAVIGATION, REST, Chapter, Lab, anchor, tags

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# A stretch between places to stop, in minutes, as its share of the chapter's text and cells tells.
SHORTEST, LONGEST = 20, 42
CODE_CELL = 40  # A code cell with its output takes as long as this many words.


def cells_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["cells"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def navigation_of(path: Path) -> list[str]:
    return [source(cell) for cell in cells_of(path) if NAVIGATION in tags(cell)]


def notebook(*cells: str, tag: str = "", **facts: object) -> str:
    """A notebook's file. A cell that begins with `!` has the tag."""
    made = [
        {
            "cell_type": "markdown",
            "id": f"cell-{number}",
            "metadata": {"tags": [tag]} if text.startswith("!") else {},
            "source": text.removeprefix("!").splitlines(keepends=True),
        }
        for number, text in enumerate(cells)
    ]
    metadata = {"kafkalab": facts} if facts else {}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two chapters and two labs."""
    for folder in ("notebooks", "solutions/01_games"):
        (tmp_path / folder).mkdir(parents=True)
    labs = "- [dice](../labs/01_games/01_dice.ipynb)\n- [chess](../labs/01_games/01_chess.ipynb)"
    games = ["# Play games", "## 1 · Dice", "!Stop.", "## 2 · Chess, or `go`?\n\nText", labs]
    (tmp_path / "notebooks/01_games.ipynb").write_text(notebook(*games, tag=REST))
    (tmp_path / "notebooks/02_more.ipynb").write_text(notebook("# Play on", "## 1 · More"))
    for stem, needs in (("chess", "chapter 01"), ("dice", "chapter 01, section 1")):
        path = tmp_path / f"solutions/01_games/01_{stem}.ipynb"
        path.write_text(notebook(f"# Play {stem}", "Text", minutes=20, needs=needs))
    monkeypatch.setattr(link_notebooks, "ROOT", tmp_path)
    return tmp_path


def test_the_links_are_written() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/link_notebooks.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"make labs writes them: {done.stdout}"


def test_a_chapter_gets_its_contents_and_a_line_at_its_end(small: Path) -> None:
    assert link_notebooks.main(check=False) == 4
    top, end = navigation_of(small / "notebooks/01_games.ipynb")
    assert top.split("\n") == [
        "[Chapter 2: Play on →](02_more.ipynb)",
        "",
        "**In this chapter**",
        "",
        "1. [Dice](#1-·-Dice) · a good place to stop",
        "    - Lab, 20 minutes: [Play dice](../labs/01_games/01_dice.ipynb)",
        "2. [Chess, or `go`?](#2-·-Chess,-or-go?)",
        "    - Lab, 20 minutes: [Play chess](../labs/01_games/01_chess.ipynb)",
    ]
    assert end == "Next: [Chapter 2: Play on →](02_more.ipynb)"
    assert navigation_of(small / "notebooks/02_more.ipynb")[0].startswith("[← Chapter 1: Play games](01_games.ipynb)\n")
    assert navigation_of(small / "notebooks/02_more.ipynb")[1].startswith("This was the last chapter.")


def test_a_lab_gets_one_line(small: Path) -> None:
    link_notebooks.main(check=False)
    assert navigation_of(small / "solutions/01_games/01_dice.ipynb") == [
        "Lab 1 of 2 of [chapter 1](../../notebooks/01_games.ipynb) · [Play chess →](../../labs/01_games/01_chess.ipynb)"
    ]
    assert navigation_of(small / "solutions/01_games/01_chess.ipynb") == [
        "Lab 2 of 2 of [chapter 1](../../notebooks/01_games.ipynb) · [← Play dice](../../labs/01_games/01_dice.ipynb)"
    ]


def test_only_cells_of_links_are_written_and_only_once(small: Path) -> None:
    files = sorted(small.rglob("*.ipynb"))
    before = {path: json.loads(path.read_text()) for path in files}
    assert link_notebooks.main(check=True) == 4
    assert {path: json.loads(path.read_text()) for path in files} == before, "--check writes nothing"
    link_notebooks.main(check=False)
    written = {path: path.read_text() for path in files}
    for path, text in written.items():
        notebook = json.loads(text)
        notebook["cells"] = [cell for cell in notebook["cells"] if NAVIGATION not in tags(cell)]
        assert notebook == before[path]
    assert link_notebooks.main(check=False) == 0
    (small / "notebooks/02_more.ipynb").write_text(written[small / "notebooks/02_more.ipynb"].replace("Play on", "Go on"))
    assert link_notebooks.main(check=False) == 1, "a title that changed stands in the chapter before it, too"


def test_a_place_to_stop_stands_before_a_section(small: Path) -> None:
    (small / "notebooks/02_more.ipynb").write_text(notebook("# Play on", "## 1 · More", "!Stop.", "Text", tag=REST))
    with pytest.raises(SystemExit, match=r"02_more.ipynb: no section begins after the cell cell-2"):
        link_notebooks.main(check=False)


@pytest.mark.parametrize(
    ("lab", "section"),
    [
        ("00_environment", 8),  # chapter 00
        ("02_failsafe", 9),  # chapter 02, sections 1 to 9
        ("02_storage", 6),  # chapter 01, section 6; chapter 02, section 6
        ("04_delivery", 2),  # chapter 04, sections 1 and 2; SQL that you can read
        ("04_priority", 9),  # chapter 04, and the lab 03_partitioner
        ("07_rolling", 3),  # the lab 07_users
        ("09_jdbc", 8),  # chapter 09, sections 1 to 5 and 8, and the lab 09_cdc
        ("09_transform", 9),  # chapter 09, sections 1 to 3, 6, 7 and 9
        ("10_sql_windows", 6),  # the lab 10_windows, and chapter 10, sections 4 and 6
        ("11_spark_cluster", 5),  # chapter 11, sections 3 to 5; 2.2 GB of free memory
    ],
)
def test_a_lab_belongs_after_the_last_section_that_it_needs(lab: str, section: int) -> None:
    [path] = (ROOT / "solutions").glob(f"*/{lab}.ipynb")
    assert Chapter(ROOT / f"notebooks/{path.parent.name}.ipynb").section_of(Lab(path)) == section


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_table_of_contents_leads_to_every_section_and_lab(path: Path) -> None:
    headings = [line.removeprefix("## ") for cell in cells_of(path) for line in source(cell).split("\n") if "## " in line]
    top = navigation_of(path)[0]
    targets = re.findall(r"\]\(#(.+)\)", top)
    assert targets == [heading.replace("`", "").replace(" ", "-") for heading in headings if re.match(r"\d+ ·", heading)]
    assert [anchor(f"{number} · x") for number in range(1, len(targets) + 1)] == [
        f"{n}-·-x" for n in range(1, len(targets) + 1)
    ]
    labs = re.findall(r"\(\.\./labs/\w+/(\w+)\.ipynb\)", top)
    content = find_course().content
    assert sorted(labs) == sorted(stem for stem in content.lab_stems() if content.chapter_of(stem) == path.stem)


def test_labs_follow_each_other_in_the_courses_order() -> None:
    content = find_course().content
    stems = content.lab_stems()
    for before, stem, after in zip([None, *stems], stems, [*stems[1:], None], strict=False):
        [line] = navigation_of(ROOT / f"labs/{content.chapter_of(stem)}/{stem}.ipynb")
        assert re.findall(r"\[← [^]]+\]\(\S+/(\w+)\.ipynb\)", line) == ([before] if before else [])
        assert re.findall(r"→\]\(\S+/(\w+)\.ipynb\)", line) == ([after] if after else [])


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_long_chapter_has_places_to_stop(path: Path) -> None:
    minutes = outline(path).minutes
    stretches = [0.0]
    for cell in cells_of(path):
        if REST in tags(cell):
            stretches.append(0.0)
            assert source(cell).endswith("select this cell and choose *Run → Run All Above Selected Cell*.")
        elif NAVIGATION not in tags(cell):
            stretches[-1] += CODE_CELL if cell["cell_type"] == "code" else len(source(cell).split())
    lengths = [minutes * stretch / sum(stretches) for stretch in stretches]
    assert all(SHORTEST < length < LONGEST for length in lengths), lengths


def test_a_lab_that_is_new_is_linked_at_once(small: Path) -> None:
    shutil.copy(small / "solutions/01_games/01_dice.ipynb", small / "solutions/01_games/01_ludo.ipynb")
    link_notebooks.main(check=False)
    assert "labs/01_games/01_ludo.ipynb" in navigation_of(small / "notebooks/01_games.ipynb")[0]
    assert navigation_of(small / "solutions/01_games/01_ludo.ipynb")[0].startswith("Lab 3 of 3 of ")
