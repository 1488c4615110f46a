"""The manifest for Kubernetes: as its API has it, and as the package wants to be called."""

from __future__ import annotations

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from kafkalab.distribution.jars import locked_jars
from pipeline import Settings
from pipeline.__main__ import main

MANIFEST = Path(__file__).parents[2] / "docs/pipeline.yaml"
PARTS = list(yaml.safe_load_all(MANIFEST.read_text()))
DRIVER = PARTS[-1]["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part["kind"])
def test_kubernetes_takes_it(part: dict) -> None:
    kubernetes_validate.validate(part, "1.33", strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(PARTS[-1] | {"specification": {}}, "1.33", strict=True)


def test_the_driver_is_called_as_the_package_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Settings] = []
    monkeypatch.setattr("pipeline.__main__._run", lambda settings, *_: started.append(settings))
    monkeypatch.setenv("PIPELINE_DATABASE", "postgresql://here/db")
    script = next(number for number, argument in enumerate(DRIVER["args"]) if argument.endswith("__main__.py"))
    main(DRIVER["args"][script + 1 :])
    [settings] = started
    assert settings.kafka == {"kafka.bootstrap.servers": "kafka:9092"} and settings.registry == "http://registry:8081"
    assert "PIPELINE_DATABASE" in {variable["name"] for variable in DRIVER["env"]}


def test_its_packages_are_those_that_are_locked() -> None:
    [packages] = [argument for argument in DRIVER["args"] if argument.startswith("--packages=")]
    assert set(packages.removeprefix("--packages=").split(",")) <= {jar.coordinate for jar in locked_jars("spark")}
