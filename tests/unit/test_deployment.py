"""The pipeline runs elsewhere with the Spark that the course has, and imports nothing of the course."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from kafkalab.distribution.jars import locked_jars
from truck_pipeline.session import packages

ROOT = Path(__file__).parents[2]
PIPELINE = ROOT / "pipeline"


def test_its_packages_are_those_that_are_locked() -> None:
    assert set(packages(delta=True)) <= {jar.coordinate for jar in locked_jars("spark")}


def test_its_image_has_the_locked_jars() -> None:
    named = dict(line.split("  ")[::-1] for line in (PIPELINE / "deploy/jars.sha256").read_text().splitlines())
    assert named == {"{}_{}-{}.jar".format(*jar.coordinate.split(":")): jar.sha256 for jar in locked_jars("spark")}


def test_its_image_has_the_courses_versions() -> None:
    pipeline, course = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", lock.read_text(), re.MULTILINE))
        for lock in (PIPELINE / "requirements.lock", ROOT / "requirements/course.lock")
    )
    assert pipeline.items() <= course.items(), "make lock"


def test_its_spark_is_the_courses() -> None:
    course, pipeline = (tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in (ROOT, PIPELINE))
    [spark] = [one for one in pipeline["dependencies"] if one.startswith("pyspark")]
    assert spark in course["dependencies"]


def test_the_chapters_command_names_the_locked_packages() -> None:
    chapter = (ROOT / "notebooks/11_spark_pipeline.ipynb").read_text()
    [named] = re.findall(r"spark-submit --packages (\S+) ", chapter)
    assert named.split(",") == packages()


def test_it_imports_neither_the_engine_nor_the_course() -> None:
    files = [*(PIPELINE / "src").rglob("*.py"), *(PIPELINE / "tests").rglob("*.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    roots = {name.partition(".")[0] for name in imported}
    assert "truck_pipeline" in roots and not roots & {"kafkalab", "kafkacourse", "stocks"}
