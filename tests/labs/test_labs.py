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

from kafkalab.checks import checks, labs
from kafkalab.course import find_course
from notebook_support import NOTEBOOKS
from support import BACKEND

ROOT = Path(__file__).parents[2]
END = "end of"
LABS = sorted(p for p in (ROOT / "labs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def checks_in(path: Path) -> set[str]:
    """Ids of the labs that a notebook checks."""
    code = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
    return {id for id in checks() if f'check("{id}"' in code}


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
        assert "/kafkacourse" not in sources, f"{path.name} looks for the installed package in a folder"


def test_no_delivery_report_drops_its_error() -> None:
    for path in NOTEBOOKS:
        sources = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        for error, body in re.findall(r"on_delivery=lambda (\w+)(?:, \w+)*: (.*)", sources):
            assert error != "_" and re.search(rf"\b{error}\b", body), f"{path.name}: {body}"


def test_no_notebook_touches_the_path_of_modules() -> None:
    for path in [*NOTEBOOKS, *LABS]:
        assert "sys.path" not in path.read_text(), path.name


def test_a_lab_needs_sections_that_exist() -> None:
    for stem in labs():
        needs = find_course().content.lab_facts(stem).needs
        for chapter, text in re.findall(r"chapter (\d\d), sections? ([\d, toand]+)", needs):
            [notebook] = (ROOT / "notebooks").glob(f"{chapter}_*.ipynb")
            prose = "\n".join(c.source for c in nbformat.read(notebook, as_version=4).cells if c.cell_type == "markdown")
            numbers = {int(number) for number in re.findall(r"\d+", text)}
            assert numbers <= {int(n) for n in re.findall(r"^## (\d+) ·", prose, re.MULTILINE)}, stem


def test_a_lab_says_what_it_needs_and_how_long_it_takes() -> None:
    for path in LABS:
        facts = find_course().content.lab_facts(path.stem)
        assert facts.difficulty in ("easy", "medium", "hard"), path.name
        head = nbformat.read(path, as_version=4).cells[0].source
        assert f"**Time:** about {facts.minutes} minutes; the cells run for {facts.seconds} seconds." in head, path.name
        for link in re.findall(r"\]\((\.\./[^)]+)\)", head):
            assert (path.parent / link).is_file(), f"{path.name}: {link}"


def test_each_chapter_lists_its_labs() -> None:
    for path in LABS:
        chapter = ROOT / "notebooks" / f"{path.parent.name}.ipynb"
        assert f"labs/{path.parent.name}/{path.name}" in chapter.read_text(), f"{chapter.name} doesn't name {path.stem}"


def test_every_lab_is_checked_by_one_notebook() -> None:
    by_notebook = [checks_in(path) for path in LABS]
    assert sorted(id for checked in by_notebook for id in checked) == sorted(checks())
    assert all(by_notebook), "a notebook checks nothing"


def test_every_lab_has_hints_and_requirements() -> None:
    for check in checks().values():
        assert check.requirements and 2 <= len(check.hints) <= 4, check.id


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
