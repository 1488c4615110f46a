"""Labs are what the solutions generate, and an untouched lab runs through without passing its check."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from kafkalab.checks import labs

ROOT = Path(__file__).parents[2]
LABS = sorted(p for p in (ROOT / "labs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def checks_in(path: Path) -> set[str]:
    """Ids of the labs that a notebook checks."""
    code = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
    return {lab for lab in labs() if f'check("{lab}"' in code}


def test_labs_are_what_the_solutions_generate() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/make_labs.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"make labs writes them anew: {done.stdout}"


def test_a_lab_gets_the_given_modules_and_not_what_the_learner_writes() -> None:
    given, all_of_it = ({p.relative_to(ROOT / f) for p in (ROOT / f).rglob("*.py")} for f in ("labs", "solutions"))
    assert given == {Path("04_consumer/workers_app.py")}
    written = all_of_it - given
    assert {Path("03_producer/partitioner.py"), Path("04_consumer/contiguous.py")} <= written
    for module in written:
        lab = (ROOT / "solutions" / module).read_text().splitlines()[0].removeprefix("# Written in the lab ").removesuffix(".")
        assert f"from {module.stem} import" in (ROOT / "solutions" / module.parent / f"{lab}.ipynb").read_text()


def test_no_notebook_needs_the_solutions() -> None:
    for path in [*LABS, *(ROOT / "notebooks").glob("*.ipynb")]:
        sources = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        assert "solutions/" not in sources, f"{path.name} refers to a folder that a course may lack"
        assert "/stocks" not in sources, f"{path.name} looks for the installed package in a folder"


def test_no_delivery_report_drops_its_error() -> None:
    for path in [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "solutions").glob("*/*.ipynb")]:
        sources = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        assert "on_delivery=lambda _" not in sources, path.name


def test_every_lab_is_checked_by_one_notebook() -> None:
    by_notebook = [checks_in(path) for path in LABS]
    assert sorted(lab for checked in by_notebook for lab in checked) == sorted(labs())
    assert all(by_notebook), "a notebook checks nothing"


def test_every_lab_has_hints_and_requirements() -> None:
    for lab in labs().values():
        assert lab.requirements and 2 <= len(lab.hints) <= 4, lab.id


@pytest.mark.cluster
@pytest.mark.parametrize("path", LABS, ids=lambda p: p.stem)
def test_an_untouched_lab_runs_and_does_not_pass(path: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("kafkalab")), "run", "--backend", "local", "--out", str(tmp_path), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    executed = nbformat.read(next(tmp_path.rglob(path.name)), as_version=4)
    printed = "".join(o.get("text", "") for c in executed.cells for o in c.get("outputs", []))
    for lab in checks_in(path):
        _, _, verdict = printed.partition(f"{lab}: ")
        verdict = re.split(r"requirements? (?:are|is) met", verdict)[0]
        assert "✗" in verdict, f"the untouched lab {lab} passes its check:\n{printed}"
