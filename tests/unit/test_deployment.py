"""The manifest for Kubernetes: as its API has it, and as the package wants to be called."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from kafkalab.distribution.jars import locked_jars
from pipeline import Settings, __main__
from pipeline.__main__ import main

MANIFEST = Path(__file__).parents[2] / "docs/pipeline.yaml"
PARTS = list(yaml.safe_load_all(MANIFEST.read_text()))
DRIVER = PARTS[-1]["spec"]["template"]["spec"]["containers"][0]
[JOB] = [part["spec"]["jobTemplate"] for part in PARTS if part["kind"] == "CronJob"]
LAKE = JOB["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part["kind"])
def test_kubernetes_takes_it(part: dict) -> None:
    kubernetes_validate.validate(part, "1.33", strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(PARTS[-1] | {"specification": {}}, "1.33", strict=True)


def test_the_drivers_are_called_as_the_package_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Settings, bool, str | None]] = []
    monkeypatch.setattr("pipeline.__main__._run", lambda *how: started.append(how))
    monkeypatch.setenv("PIPELINE_DATABASE", "postgresql://here/db")
    for container in (DRIVER, LAKE):
        script = next(number for number, argument in enumerate(container["args"]) if argument.endswith("__main__.py"))
        main(container["args"][script + 1 :])
    [(settings, *streams), (same, *lake)] = started
    assert (settings.patience, settings.trigger, settings.most) == (Settings.patience, Settings.trigger, Settings.most)
    assert settings.kafka == {"kafka.bootstrap.servers": "kafka:9092"} and settings.registry == "http://registry:8081"
    assert "PIPELINE_DATABASE" in {variable["name"] for variable in DRIVER["env"]}
    assert streams == [False, None] and lake == [False, "/lake"] and same == settings


def packages(container: dict) -> set[str]:
    [argument] = [argument for argument in container["args"] if argument.startswith("--packages=")]
    return set(argument.removeprefix("--packages=").split(","))


def test_their_packages_are_those_that_are_locked_and_that_the_package_names() -> None:
    assert packages(DRIVER) < packages(LAKE) <= {jar.coordinate for jar in locked_jars("spark")}
    usage = __main__.__doc__ or ""
    assert all(package in usage for package in packages(LAKE))
    assert all(setting.removeprefix("--conf=") in usage for setting in LAKE["args"] if "spark.sql" in setting)


def test_the_images_recipe_has_a_python_for_the_package_and_the_locked_spark() -> None:
    recipe = MANIFEST.read_text().partition("kind:")[0]
    project = tomllib.loads((MANIFEST.parents[1] / "pyproject.toml").read_text())["project"]
    [python] = re.findall(r"apt-get install -y python([\d.]+)-venv", recipe)
    assert f"python{python} -m venv /opt/python" in recipe and "PYSPARK_PYTHON=/opt/python/bin/python" in recipe
    assert SpecifierSet(project["requires-python"]).contains(python)
    [spark] = re.findall(r"FROM apache/spark:(\S+)", recipe)
    assert f"pyspark=={spark}" in project["dependencies"]


def test_the_chapters_command_names_the_locked_packages() -> None:
    chapter = (MANIFEST.parents[1] / "notebooks/11_spark_pipeline.ipynb").read_text()
    [given] = re.findall(r"spark-submit --packages (\S+) ", chapter)
    assert set(given.split(",")) == packages(DRIVER)
