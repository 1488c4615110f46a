"""The course without its repository: built as a wheel, installed elsewhere, and opened; and a clone without solutions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from pathlib import Path

import nbformat
import pytest

from kafkalab.course import find_course
from kafkalab.paths import cache_dir
from kafkalab.waiting import wait_until
from support import PATIENCE, on_a_port

ROOT = Path(__file__).parents[2]
NOT_COPIED = (".git", ".venv", "__pycache__", "*.egg-info", ".*_cache", ".ipynb_checkpoints", "workspace", "build", "dist")
OPEN_A_LAB = ("lab", "--no-browser", "--no-standby", "02_failsafe")
LAB = "labs/00_start_here/00_first_record.ipynb"


def copy_of_the_course(target: Path, *without: str) -> Path:
    return shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*NOT_COPIED, *without))


def environment(home: Path) -> dict[str, str]:
    """That of a user who has fetched what the course needs, and nothing else."""
    others = ("KAFKALAB_", "PYTHON", "JUPYTER", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return {
        **kept,
        "HOME": str(home),
        "KAFKALAB_CACHE": str(cache_dir()),
        "JUPYTERLAB_DIR": str(Path(sys.prefix, "share/jupyter/lab")),  # JupyterLab's pages lie beside its Python
        "JUPYTER_PATH": str(Path(sys.prefix, "share/jupyter")),
    }


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The course and its pipeline, built as an installer does that has the source distributions only."""
    folder = tmp_path_factory.mktemp("build")
    source = copy_of_the_course(folder / "source")
    build = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"

    def built(what: str, where: Path) -> Path:
        done = subprocess.run([sys.executable, "-c", build, what, folder], cwd=where, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder / done.stdout.splitlines()[-1]

    def wheel(name: str, project: Path) -> Path:
        shutil.unpack_archive(built("build_sdist", project), folder / name)
        return built("build_wheel", next((folder / name).iterdir()))

    return {name: wheel(name, project) for name, project in (("course", source), ("pipeline", source / "pipeline"))}


def test_the_wheel_has_the_course_and_no_leftovers(wheels: dict[str, Path]) -> None:
    content = find_course().content
    folder = "kafkacourse/content/"
    inside = {name.removeprefix(folder) for name in zipfile.ZipFile(wheels["course"]).namelist() if name.startswith(folder)}
    assert inside == {*content.files(), *content.solutions()}


def test_the_wheels_have_no_package_in_common(wheels: dict[str, Path]) -> None:
    packages = [{name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()} for wheel in wheels.values()]
    assert "kafkacourse" in packages[0] and "truck_pipeline" in packages[1]
    assert not packages[0] & packages[1]


@pytest.mark.network
def test_an_installed_course_makes_a_workspace(wheels: dict[str, Path], tmp_path: Path) -> None:
    python = tmp_path / "env/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    packages = Path(subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
    ).stdout.strip())  # fmt: skip
    # Editable packages of a folder that is named there aren't seen.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    uv = Path(sysconfig.get_path("scripts"), "uv")
    install = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python]
    subprocess.run([*install, *wheels.values()], check=True)
    subprocess.run([python, "-c", "import kafkalab, truck_pipeline"], cwd=tmp_path, env=environment(tmp_path), check=True)

    def kafkalab(*arguments: str) -> list[str]:
        return [str(python.with_name("kafkalab")), *arguments]

    assert_opens(kafkalab(*OPEN_A_LAB, *on_a_port()), tmp_path, environment(tmp_path), PATIENCE)
    workspace = tmp_path / "kafkalab"
    command = kafkalab("solution", "--yes", "02_failsafe")
    shown = subprocess.check_output(command, cwd=tmp_path, env=environment(tmp_path), text=True)
    assert shown == f"The solution is {workspace}/solutions/02_cluster_failover/02_failsafe.ipynb.\n"


@pytest.mark.network
@pytest.mark.at_length  # it downloads all packages, some 800 MB
@pytest.mark.timeout(1800)
def test_uvx_opens_the_course_from_nothing(wheels: dict[str, Path], tmp_path: Path) -> None:
    """As docs/use says, with an empty home: no package, no download and no Java is there."""
    home = tmp_path / "home"
    home.mkdir()
    uvx = [str(Path(sysconfig.get_path("scripts"), "uvx")), "--quiet", "--python", sys.executable]
    command = [*uvx, "--with", str(wheels["pipeline"]), "--from", str(wheels["course"]), "kafkalab", *OPEN_A_LAB, *on_a_port()]
    others = ("KAFKALAB_CACHE", "JUPYTER", "UV_CACHE_DIR", "XDG_")
    nothing = {name: value for name, value in environment(home).items() if not name.startswith(others)}
    assert_opens(command, home, nothing, 1500)
    assert (home / ".cache/uv").is_dir()  # nothing of this machine's was used


def assert_opens(command: list[str], home: Path, environment: dict[str, str], patience: float) -> None:
    """JupyterLab starts in a home, with a complete workspace, opens the lab, and ends when it's told to."""
    log = home / "log"
    with log.open("w") as output:
        lab = subprocess.Popen(
            command, cwd=home, env=environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def ended() -> None:
        assert lab.poll() is None, log.read_text()

    try:
        found = wait_until(
            lambda: re.search(r"http://127\S+", log.read_text()), patience, "JupyterLab's address",
            last_seen=log.read_text, unless=ended,
        )  # fmt: skip
        with urllib.request.urlopen(found[0], timeout=PATIENCE) as page:
            assert page.status == 200
    finally:
        lab.terminate()
        lab.wait(PATIENCE)
    workspace = home / "kafkalab"
    assert f"Your workspace is {workspace}. Change anything in it" in log.read_text()
    assert "/lab/tree/labs/02_cluster_failover/02_failsafe.ipynb" in found[0]
    assert {path.name for path in workspace.iterdir()} == {".kafkalab", "labs", "notebooks"}
    assert all((workspace / name).exists() for name in find_course().content.files())


@pytest.mark.cluster
@pytest.mark.network
def test_a_clone_without_solutions_is_set_up_and_runs_a_lab(tmp_path: Path) -> None:
    """Its environment is this one, and so is its cache: `make setup` finds nothing to install or to fetch."""
    clone = copy_of_the_course(tmp_path / "clone", "solutions")
    programs = clone / ".venv/bin"
    programs.mkdir(parents=True)
    python = f'PYTHONPATH="{clone}/src:{clone}/pipeline/src" exec "{sys.executable}"'
    kafkalab = f'[ "$1" = fetch ] || {python} -m kafkalab.cli'
    for name, does in {"python": f'{python} "$@"', "kafkalab": f'{kafkalab} "$@"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    wanted = "{ pwd -P; cat requirements/course.lock pyproject.toml pipeline/pyproject.toml; } | cksum > .venv/.course-ready"
    subprocess.run(wanted, shell=True, cwd=clone, check=True)

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=clone, env=environment(tmp_path),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    run("make", "setup")
    run(programs / "python", "-c", "from kafkalab.course import open_workspace; open_workspace().update()")
    run(programs / "kafkalab", "run", "--backend", "local", "--out", tmp_path / "out", f"workspace/{LAB}")
    [ran] = (tmp_path / "out").rglob(Path(LAB).name)
    printed = [output.text for cell in nbformat.read(ran, 4).cells for output in cell.get("outputs", ()) if "text" in output]
    assert printed[0] == "records of others: 75\n"
    assert "requirements are met" in printed[-1]
