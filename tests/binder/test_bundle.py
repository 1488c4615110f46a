"""A bundle, unzipped in a folder of its own, is set up, opened, and gets its solutions later."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalab.cli import main

LAB = "03_retries"


@pytest.fixture
def unzipped(tmp_path: Path) -> Path:
    """Chapter 03 without solutions."""
    assert main(["bundle", "--labs", "03", "--without-solutions", "--output", str(tmp_path / "class.zip")]) == 0
    shutil.unpack_archive(tmp_path / "class.zip", tmp_path / "class")
    [folder] = (tmp_path / "class").iterdir()
    return folder


def environment(home: Path) -> dict[str, str]:
    """That of a learner, who keeps nothing of the course elsewhere."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("KAFKALAB_", "PYTHON", "JUPYTER", "XDG_"))
    }
    return {**kept, "HOME": str(home)}


def run(folder: Path, *command: str | Path, status: int = 0) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(folder.parent),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == status, done.stdout
    return done.stdout


def use(folder: Path, solutions: Path) -> None:
    """Make a workspace, ask for a solution in vain, take solutions up, and ask again."""
    python, kafkalab = folder / ".venv/bin/python", folder / ".venv/bin/kafkalab"
    update = (
        "from kafkalab.course import find_course, open_workspace; open_workspace().update(); print(find_course().problems())"
    )
    assert run(folder, python, "-c", update) == "[]\n"
    workspace = folder / "workspace"
    assert sorted(path.stem for path in (workspace / "notebooks").glob("*.ipynb")) == ["03_producer"]
    assert len(list((workspace / "labs/03_producer").glob("*.ipynb"))) == 8
    assert f"there is no solution of {LAB} yet" in run(folder, kafkalab, "solution", "--yes", LAB, status=1)
    assert "8 solutions are here now" in run(folder, kafkalab, "release", solutions)
    shown = run(folder, kafkalab, "solution", "--yes", LAB)
    assert shown == f"The solution is {workspace}/solutions/03_producer/{LAB}.ipynb.\n"


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    target = tmp_path / "solutions.zip"
    assert main(["bundle", "--labs", "03", "--solutions-only", "--output", str(target)]) == 0
    return target


def test_a_bundle_works_on_its_own(unzipped: Path, solutions: Path) -> None:
    """Its environment is this one: `setup.sh` finds nothing to install."""
    programs = unzipped / ".venv/bin"
    programs.mkdir(parents=True)
    python = f'PYTHONPATH="{unzipped}/src:{unzipped}/pipeline/src" exec "{sys.executable}"'
    for name, does in {"python": f'{python} "$@"', "kafkalab": f'{python} -m kafkalab.cli "$@"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    wanted = "{ pwd -P; cat requirements/course.lock pyproject.toml pipeline/pyproject.toml; } | cksum > .venv/.course-ready"
    subprocess.run(wanted, shell=True, cwd=unzipped, check=True)
    assert run(unzipped, "bash", "tools/setup.sh", "course") == ""
    use(unzipped, solutions)


@pytest.mark.at_length
@pytest.mark.network
@pytest.mark.timeout(1800)
def test_a_bundle_is_set_up_from_nothing(unzipped: Path, solutions: Path) -> None:
    """With the README's first command: it downloads everything that the course needs."""
    assert "bash tools/setup.sh course" in (unzipped / "README.md").read_text()
    assert "setup: done" in run(unzipped, "bash", "tools/setup.sh", "course")
    use(unzipped, solutions)
