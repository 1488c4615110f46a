"""The image and the manifest for Kubernetes: as its API takes them, and as the package wants to be called."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from truck_pipeline import Settings, __main__
from truck_pipeline.__main__ import main
from truck_pipeline.session import DELTA_SETTINGS
from truck_pipeline.session import packages as required_packages

ROOT = Path(__file__).parents[1]
PARTS = list(yaml.safe_load_all((ROOT / "deploy/pipeline.yaml").read_text()))
DRIVER = PARTS[-1]["spec"]["template"]["spec"]["containers"][0]
[JOB] = [part["spec"]["jobTemplate"] for part in PARTS if part["kind"] == "CronJob"]
LAKE = JOB["spec"]["template"]["spec"]["containers"][0]
SCRIPT = re.compile(r"/opt/truck-pipeline/(src/.*/__main__\.py)")


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part["kind"])
def test_kubernetes_takes_it(part: dict) -> None:
    kubernetes_validate.validate(part, "1.33", strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(PARTS[-1] | {"specification": {}}, "1.33", strict=True)


def test_the_drivers_are_called_as_the_package_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Settings, bool, str | None]] = []
    monkeypatch.setattr("truck_pipeline.__main__._run", lambda *how: started.append(how))
    monkeypatch.setenv("PIPELINE_DATABASE", "postgresql://here/db")
    for container in (DRIVER, LAKE):
        [script] = [number for number, argument in enumerate(container["args"]) if SCRIPT.fullmatch(argument)]
        assert (ROOT / SCRIPT.fullmatch(container["args"][script])[1]).samefile(__main__.__file__)
        main(container["args"][script + 1 :])
    [(settings, *streams), (same, *lake)] = started
    assert (settings.patience, settings.trigger, settings.most) == (Settings.patience, Settings.trigger, Settings.most)
    assert settings.kafka == {"kafka.bootstrap.servers": "kafka:9092"} and settings.registry == "http://registry:8081"
    assert "PIPELINE_DATABASE" in {variable["name"] for variable in DRIVER["env"]}
    assert streams == [False, None] and lake == [False, "/lake"] and same == settings


def packages(container: dict) -> list[str]:
    [argument] = [argument for argument in container["args"] if argument.startswith("--packages=")]
    return argument.removeprefix("--packages=").split(",")


def test_they_get_what_the_package_needs_and_names() -> None:
    assert packages(DRIVER) == required_packages() and packages(LAKE) == required_packages(delta=True)
    settings = {argument.removeprefix("--conf=") for argument in LAKE["args"] if "spark.sql" in argument}
    assert settings == {f"{name}={value}" for name, value in DELTA_SETTINGS.items()}
    usage = __main__.__doc__ or ""
    assert all(name in usage for name in [*packages(LAKE), *settings])


def test_the_image_has_a_python_for_the_package_and_its_spark() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [python] = re.findall(r"apt-get install .* python([\d.]+)-venv", recipe)
    assert f"python{python} -m venv /opt/python" in recipe and "PYSPARK_PYTHON=/opt/python/bin/python" in recipe
    assert SpecifierSet(project["requires-python"]).contains(python)
    [spark] = re.findall(r"FROM apache/spark:(\S+)", recipe)
    assert f"pyspark=={spark}" in project["dependencies"]
    images = set(re.findall(r"registry\.example\.com/\S+", (ROOT / "deploy/pipeline.yaml").read_text()))
    assert set(re.findall(r"registry\.example\.com/\S+", recipe)) == images
