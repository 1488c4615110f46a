"""Files of the learner's with the names of packages that the course imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalab.cli import main
from kafkalab.kernel import own_folder_after_pythons
from kafkalab.shadows import hiding_files, shadows
from support import PATIENCE

HIDING = (
    "kafka.py",
    "confluent_kafka.py",
    "pyspark.py",
    "pandas.py",
    "docker.py",
    "kafkacourse.py",
    "truck_pipeline.py",
    "kafkalab.py",
)
HARMLESS = (
    "kafkacourse.stocks.py",
    "pipeline.py",
    "spark.py",
    "mine.py",
    "kafka.txt",
    "my-kafka.py",
    "random.py",
    "queue.py",
    "typing.py",
)


@pytest.mark.parametrize("name", HIDING)
def test_a_file_that_hides_a_package_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    (line,) = hiding_files(tmp_path)
    assert str(tmp_path / name) in line and "rename it" in line


@pytest.mark.parametrize("name", HARMLESS)
def test_other_files_hide_none(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert hiding_files(tmp_path) == []


def test_a_folder_hides_a_package_only_if_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "testcontainers").mkdir()
    assert hiding_files(tmp_path) == []
    (tmp_path / "testcontainers" / "__init__.py").touch()
    assert "testcontainers" in hiding_files(tmp_path)[0]


def test_a_compiled_file_hides_a_package_too(tmp_path: Path) -> None:
    (tmp_path / "yaml.abi3.so").touch()
    (tmp_path / "six.pyc").touch()
    assert [name for _, name in shadows(tmp_path, sys.path)] == ["six", "yaml"]


def python(folder: Path, program: str, *options: str, **variables: str) -> str:
    result = subprocess.run(
        [sys.executable, *options, "-c", program],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return result.stdout + result.stderr


def test_importing_the_course_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "kafka.py").touch()
    said = python(tmp_path, "from kafkalab import Cluster")
    assert f"ShadowedModule: {tmp_path / 'kafka.py'} has the name of a package" in said


def test_pythons_own_modules_come_first_in_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "queue.py").touch()
    program = "import sys; from kafkalab.kernel import own_folder_after_pythons as own; sys.path = own(sys.path); "
    said = python(tmp_path, program + "from kafkalab import wait_until; import queue; print(queue.Queue)", "-P")
    assert "queue.Queue" in said and "Error" not in said


def test_elsewhere_they_do_not(tmp_path: Path) -> None:
    (tmp_path / "queue.py").touch()
    assert f"{tmp_path / 'queue.py'} has the name" in python(tmp_path, "from kafkalab import wait_until")


def test_the_kernel_finds_the_learners_modules_after_pythons() -> None:
    assert own_folder_after_pythons(["/lib/python3", "/lib/site-packages", "/src"]) == [
        "/lib/python3",
        "",
        "/lib/site-packages",
        "/src",
    ]
    assert own_folder_after_pythons(["/lib"]) == ["/lib", ""]


def test_run_refuses_a_folder_that_hides_the_course_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import nbformat
    from nbformat.v4 import new_notebook

    nbformat.write(new_notebook(), tmp_path / "any.ipynb")
    (tmp_path / "kafkalab.py").touch()
    assert main(["run", str(tmp_path / "any.ipynb")]) == 1
    assert "kafkalab.py has the name of a package" in capsys.readouterr().err
