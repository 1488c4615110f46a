"""What `make setup` says on a machine whose Python does not do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
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
    for folder in ("tools", "pipeline"):
        (tmp_path / folder).mkdir()
    for name in ("tools/setup.sh", "pyproject.toml", "pipeline/pyproject.toml"):
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
        "{ pwd -P; cat requirements/course.lock pyproject.toml pipeline/pyproject.toml; } | cksum",
        shell=True, cwd=clone, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (clone / ".venv/.course-ready").write_text(wanted)
    done = setup(clone, clone / "nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# A Python of an environment: it has pip, whose settings file sets these, and it notes with which variables its programs run.
VENV_PYTHON = """#!/bin/sh
case "$*" in
  *version_info*) echo 3.12 ;;
  "-m pip config list")
    echo "global.index-url='https://other.test/index'"
    echo "install.index-url='https://mirror.test/index'"
    echo "install.user='true'" ;;
  "-m pip install"*) env > {noted}/pip; exit {status} ;;
  "-c"*) exec {python} "$@" ;;
esac
"""
UV = """#!/bin/sh
env > {noted}/uv
echo "ARGUMENTS=$*" >> {noted}/uv
"""


def noted(clone: Path, program: str) -> dict[str, str]:
    lines = (clone / program).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def programs(clone: Path, status: int = 0) -> None:
    folder = clone / ".venv/bin"
    folder.mkdir(parents=True)
    for name, text in (("python", VENV_PYTHON), ("uv", UV)):
        (folder / name).write_text(text.format(noted=clone, python=sys.executable, status=status))
        (folder / name).chmod(0o755)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if re.match("PIP_|UV_|SSL_CERT|PYTHON|.*_proxy$", name, re.IGNORECASE)]:
        monkeypatch.delenv(name)
    for name in (
        "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "PIP_NO_BINARY", "UV_SYSTEM_PYTHON", "UV_NO_BINARY",
        "UV_PYTHON", "UV_EXCLUDE_NEWER", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP",
    ):  # fmt: skip
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("PIP_CERT", "/etc/own.pem")
    monkeypatch.setenv("CDPATH", "/")


def test_settings_of_pip_and_uv_count_only_if_they_say_where_packages_come_from(clone: Path, foreign: None) -> None:
    programs(clone)
    done = setup(clone, clone / "nowhere")
    assert done.returncode == 0, done.stderr
    for program in ("pip", "uv"):
        names = {name for name in noted(clone, program) if name.startswith(("PIP_", "UV_", "PYTHON"))}
        own = {"PYTHON", "UV_CACHE_DIR", "UV_DEFAULT_INDEX"} if program == "uv" else {"PYTHON"}
        assert names == {"PIP_CERT", "PIP_INDEX_URL", "PIP_CONFIG_FILE"} | own
        assert noted(clone, program)["PIP_INDEX_URL"] == "https://mirror.test/index"
    assert noted(clone, "uv")["SSL_CERT_FILE"] == "/etc/own.pem"
    assert noted(clone, "uv")["UV_DEFAULT_INDEX"] == "https://mirror.test/index"


def test_the_installer_knows_what_pip_does(clone: Path, foreign: None, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(clone)
    pips = {
        "NO_INDEX": "1",
        "TRUSTED_HOST": "mirror.test",
        "EXTRA_INDEX_URL": "https://more.test",
        "CLIENT_CERT": "/etc/me.pem",
    }
    for name, value in pips.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    assert setup(clone, clone / "nowhere").returncode == 0
    known = noted(clone, "uv")
    assert "--no-index" in known["ARGUMENTS"]
    assert known["UV_INSECURE_HOST"] == "mirror.test" and known["UV_EXTRA_INDEX_URL"] == "https://more.test"
    assert known["SSL_CLIENT_CERT"] == "/etc/me.pem"


def test_a_failure_names_the_settings(clone: Path, foreign: None) -> None:
    programs(clone, status=1)
    done = setup(clone, clone / "nowhere")
    assert done.returncode == 1
    assert "Settings of yours that counted: PIP_CERT PIP_INDEX_URL" in done.stdout + done.stderr
    assert "settings of yours that didn't count: PYTHONHOME" in done.stdout + done.stderr
    assert " PIP_USER" in done.stderr.partition("didn't count:")[2]
