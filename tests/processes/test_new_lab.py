"""A lab that `make new-lab` begins passes what every lab passes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("notebooks", "labs", "solutions", "src", "tests", "tools")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs Python in a copy of the course."""
    for part in PARTS:
        shutil.copytree(
            ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.egg-info")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}/src:{tmp_path}/tools", "KAFKALAB_BACKEND": "local"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    return run


@pytest.mark.cluster
def test_a_new_lab_passes_at_once(run: Run, tmp_path: Path) -> None:
    made = run("tools/new_lab.py", "2", "leaders")
    assert made.returncode == 0, made.stdout
    solution, module = "solutions/02_cluster_failover/02_leaders.ipynb", "ch02_cluster_failover/test_leaders.py"
    assert (
        "[02_leaders](../labs/02_cluster_failover/02_leaders.ipynb)"
        in (tmp_path / "notebooks/02_cluster_failover.ipynb").read_text()
    )
    of_all_labs = "generate or lists_its_labs or checked_by_one or hints_and_requirements or says_what_it_needs"
    tests = [f"tests/labs/{name}.py" for name in ("test_labs", "test_promises")]
    passed = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", solution, f"tests/labs/{module}", *tests,
        "tests/unit/test_hints.py", "tests/unit/test_predictions.py", "-k", f"leaders or {of_all_labs}",
    )  # fmt: skip
    assert passed.returncode == 0, passed.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("99", "leaders"), "there is no chapter '99'; there are 00_start_here, "),
        (("2", "Leaders!"), "'Leaders!' is no name for a lab; use small letters, digits and _, such as leaders"),
        (
            ("02_cluster_failover", "02_failsafe"),
            "there is a lab of that name: solutions/02_cluster_failover/02_failsafe.ipynb",
        ),
    ],
)
def test_a_lab_that_cannot_be_begun(run: Run, arguments: tuple[str, str], says: str) -> None:
    made = run("tools/new_lab.py", *arguments)
    assert made.returncode == 1 and says in made.stdout
    assert "written" not in made.stdout
