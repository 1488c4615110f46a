"""Labs are what the solutions generate, and an untouched lab runs through without passing its check."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from kafkalab.checks import labs
from kafkalab.checks.lab import notebooks
from support import BACKEND

ROOT = Path(__file__).parents[2]
END = "end of"
LABS = sorted(p for p in (ROOT / "labs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def checks_in(path: Path) -> set[str]:
    """Ids of the labs that a notebook checks."""
    code = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
    return {lab for lab in labs() if f'check("{lab}"' in code}


def test_labs_are_what_the_solutions_generate() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/make_labs.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"make labs writes them anew: {done.stdout}"


def test_a_lab_gets_no_module_that_the_learner_writes() -> None:
    assert not list((ROOT / "labs").rglob("*.py"))
    written = {p.relative_to(ROOT / "solutions") for p in (ROOT / "solutions").rglob("*.py")}
    assert {Path("03_producer/partitioner.py"), Path("04_consumer/contiguous.py")} <= written
    for module in written:
        lab = (ROOT / "solutions" / module).read_text().splitlines()[0].removeprefix("# Written in the lab ").removesuffix(".")
        assert f"from {module.stem} import" in (ROOT / "solutions" / module.parent / f"{lab}.ipynb").read_text()


def test_every_cell_of_a_lab_can_be_run_before_the_learner_has_written_anything() -> None:
    """A function of which only the answer was there would have no body."""
    shell = TransformerManager()
    for path in LABS:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                compile(shell.transform_cell(cell.source), f"{path.name}, {cell.id}", "exec")


def test_no_notebook_needs_the_solutions() -> None:
    for path in [*LABS, *(ROOT / "notebooks").glob("*.ipynb")]:
        sources = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        assert "solutions/" not in sources, f"{path.name} refers to a folder that a course may lack"
        assert "/stocks" not in sources, f"{path.name} looks for the installed package in a folder"


def test_no_delivery_report_drops_its_error() -> None:
    for path in [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "solutions").glob("*/*.ipynb")]:
        sources = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        for error, body in re.findall(r"on_delivery=lambda (\w+)(?:, \w+)*: (.*)", sources):
            assert error != "_" and re.search(rf"\b{error}\b", body), f"{path.name}: {body}"


def test_no_notebook_touches_the_path_of_modules() -> None:
    for path in [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "solutions").glob("*/*.ipynb"), *LABS]:
        assert "sys.path" not in path.read_text(), path.name


def sections(text: str) -> dict[str, set[int]]:
    """Chapter → the sections of it that a card or a lab's head names."""
    named = {}
    for chapter, first, last in re.findall(r"chapter 0?(\d+)[^,;.]*, sections? (\d+)(?: (?:to|and) (\d+))?", text):
        pair = re.search(rf"chapter 0?{chapter}[^,;.]*, sections {first} and {last}", text)
        named[chapter] = {int(first), int(last)} if last and pair else set(range(int(first), int(last or first) + 1))
    return named


def head_of(path: Path) -> str:
    """What a lab's first cell says you need, without where its links lead."""
    _, _, needs = nbformat.read(path, as_version=4).cells[0].source.partition("**What you'll need.**")
    return re.sub(r"\]\([^)]*\)|\[", "", needs.split("\n\n")[0])


def test_a_lab_and_its_card_name_the_same_sections_which_exist() -> None:
    for path in LABS:
        card = sections(notebooks()[path.stem].needs)
        head = re.sub(r"Sections (\d+) to (\d+) of chapter (\d+)", r"chapter \3, sections \1 to \2", head_of(path))
        assert sections(head.replace("Chapter", "chapter")) == card, path.name
        for chapter, numbers in card.items():
            [notebook] = (ROOT / "notebooks").glob(f"{chapter:0>2}_*.ipynb")
            there = "\n".join(
                cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "markdown"
            )
            assert numbers <= {int(n) for n in re.findall(r"^## (\d+) ·", there, re.MULTILINE)}, path.name


def test_a_lab_takes_as_long_as_its_card_says() -> None:
    for path in LABS:
        assert re.findall(r"(\d+) minutes", head_of(path)) == [str(notebooks()[path.stem].minutes)], path.name


def test_every_lab_is_checked_by_one_notebook() -> None:
    by_notebook = [checks_in(path) for path in LABS]
    assert sorted(lab for checked in by_notebook for lab in checked) == sorted(labs())
    assert all(by_notebook), "a notebook checks nothing"


def test_every_lab_has_hints_and_requirements() -> None:
    for lab in labs().values():
        assert lab.requirements and 2 <= len(lab.hints) <= 4, lab.id


def in_one_kernel(labs: list[Path]) -> nbformat.NotebookNode:
    """A notebook with the cells of several; each of them finds the namespace empty, and says at its end that it got there."""
    together = nbformat.v4.new_notebook()
    for path in labs:
        cells = nbformat.read(path, as_version=4).cells
        end = nbformat.v4.new_code_cell(f"%reset_selective -f ^(?!_)\nprint('{END} {path.stem}')")
        together.cells += [nbformat.v4.new_code_cell(cell.source) for cell in cells if cell.cell_type == "code"] + [end]
    return together


@pytest.mark.at_length  # every day, test_nothing_done.py asks each check of one who did nothing
@pytest.mark.cluster
@pytest.mark.parametrize("chapter", sorted({path.parent for path in LABS}), ids=lambda p: p.name)
def test_untouched_labs_run_and_do_not_pass(chapter: Path, tmp_path: Path) -> None:
    """A chapter's labs run one after the other in the same kernel: to start one for each would take longer than most labs."""
    labs = [path for path in LABS if path.parent == chapter]
    folder = tmp_path / chapter.name
    shutil.copytree(chapter, folder, ignore=shutil.ignore_patterns("*.ipynb*"))
    together = folder / "untouched.ipynb"
    nbformat.write(in_one_kernel(labs), together)
    command = [str(Path(sys.executable).with_name("kafkalab")), "run", "--backend", BACKEND, "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, str(together)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [executed] = (tmp_path / "out").rglob(together.name)
    rest = "".join(o.get("text", "") for c in nbformat.read(executed, as_version=4).cells for o in c.get("outputs", []))
    for path in labs:
        printed, _, rest = rest.partition(f"{END} {path.stem}\n")
        for lab in checks_in(path):
            _, _, verdict = printed.partition(f"{lab}: ")
            verdict = re.split(r"requirements? (?:are|is) met", verdict)[0]
            assert "✗" in verdict, f"the untouched lab {lab} passes its check:\n{printed}"


# Cells that you may run again at once, if your first answer was wrong: they begin by clearing away what they made before.
RUN_AGAIN = {
    "00_environment": {"format-do", "start-do"},
    "01_order": {"ordered-do", "keyed-do", "carts-do"},
    "02_customers": {"cu-2-do"},
    "02_min_insync": {"mi-1-do"},
    "02_rack_placement": {"rp-2-do"},
    "02_storage": {"st-1-do", "st-2-do"},
}
STARTED_OVER = sorted(path for n in ("00", "01", "02") for path in (ROOT / "solutions").glob(f"{n}_*/*.ipynb"))


@pytest.mark.at_length
@pytest.mark.cluster
@pytest.mark.parametrize("solution", STARTED_OVER, ids=lambda p: p.stem)
def test_a_lab_is_started_over_without_a_new_kernel(solution: Path, tmp_path: Path) -> None:
    """As `START_OVER` says: the last cell stops the cluster, and then all cells come again."""
    cells = [cell for cell in nbformat.read(solution, as_version=4).cells if cell.cell_type == "code"]
    twice = [cell.source for cell in cells for _ in range(1 + (cell.id in RUN_AGAIN.get(solution.stem, set())))]
    sources = twice + [cell.source for cell in cells]
    path = tmp_path / solution.name
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources]), path)
    command = [str(Path(sys.executable).with_name("kafkalab")), "run", "--backend", BACKEND, "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [executed] = (tmp_path / "out").rglob(path.name)
    printed = "".join(o.get("text", "") for c in nbformat.read(executed, as_version=4).cells for o in c.get("outputs", []))
    assert printed.count("Lab passed.") == 2 * len(checks_in(solution)), printed
