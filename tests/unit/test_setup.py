"""What `make setup` says on a machine whose Python does not do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Answers the question for its version; says no to any other.
FAKE = """#!/bin/sh
case "$2" in
  *version_info*) echo {version}; exit {refused} ;;
  *) exit 1 ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What setup.sh reads, in a folder of its own."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    (tmp_path / "tools").mkdir()
    for name in ("tools/setup.sh", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def setup(clone: Path, python: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / "tools/setup.sh", "course"], env={**os.environ, "PYTHON": str(python)}, capture_output=True, text=True
    )


def fake_python(clone: Path, version: str, *, refused: bool) -> Path:
    path = clone / "python"
    path.write_text(FAKE.format(version=version, refused=int(refused)))
    path.chmod(0o755)
    return path


def test_too_old(clone: Path) -> None:
    done = setup(clone, fake_python(clone, "3.9", refused=True))
    assert done.returncode == 1
    assert "needs Python 3.11 to 3.13" in done.stderr
    assert "is 3.9" in done.stderr
    assert "PYTHON=" in done.stderr
    assert not (clone / ".venv").exists()


def test_absent(clone: Path) -> None:
    done = setup(clone, clone / "nowhere")
    assert done.returncode == 1
    assert "no such command" in done.stderr


def test_without_venv(clone: Path) -> None:
    done = setup(clone, fake_python(clone, "3.12", refused=False))
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


def test_nothing_to_do(clone: Path) -> None:
    """A second call changes nothing, and is quick: it runs no installer."""
    (clone / ".venv/bin").mkdir(parents=True)
    shutil.copy(fake_python(clone, "3.12", refused=False), clone / ".venv/bin/python")
    shutil.copy(clone / "python", clone / ".venv/bin/kafkalab")
    wanted = subprocess.run(
        "{ pwd -P; cat requirements/course.lock requirements/build.lock pyproject.toml; } | cksum",
        shell=True, cwd=clone, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (clone / ".venv/.course-ready").write_text(wanted)
    done = setup(clone, clone / "nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
