"""The image, the manifests for Kubernetes and the dashboard: as their readers take them, and as the package wants to be called."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from truck_pipeline import __main__
from truck_pipeline.__main__ import main
from truck_pipeline.commands import COMMANDS
from truck_pipeline.configuration import DATABASE, Configuration
from truck_pipeline.durations import milliseconds
from truck_pipeline.metrics import Metrics
from truck_pipeline.session import DELTA_SETTINGS
from truck_pipeline.session import packages as required_packages
from truck_pipeline.settings import Settings

ROOT = Path(__file__).parents[1]
STREAM = list(yaml.safe_load_all((ROOT / "deploy/pipeline.yaml").read_text()))
JOBS = yaml.safe_load((ROOT / "deploy/lake.yaml").read_text())["items"]
FILES = next(part["data"] for part in STREAM if part["kind"] == "ConfigMap")
EXECUTOR = yaml.safe_load(FILES["executor.yaml"])
PODS = {
    "pipeline": STREAM[-1]["spec"]["template"]["spec"],
    **{
        job["metadata"]["name"]: job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        for job in JOBS
        if job["kind"] == "CronJob"
    },
}
RECIPE = (ROOT / "Dockerfile").read_text()
README = (ROOT / "README.md").read_text()


def container(pod: str) -> dict[str, Any]:
    [only] = PODS[pod]["containers"]
    return only


@pytest.mark.parametrize("part", [*STREAM, *JOBS, EXECUTOR], ids=lambda part: f"{part['kind']}-{part['metadata'].get('name')}")
def test_kubernetes_takes_it(part: dict) -> None:
    kubernetes_validate.validate(part, "1.33", strict=True)


def test_a_misspelt_field_would_be_found() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(STREAM[-1] | {"specification": {}}, "1.33", strict=True)


@pytest.mark.parametrize(
    ("pod", "command"), [("pipeline", "run"), ("lake", "lake"), ("reconcile", "reconcile"), ("optimize", "optimize")]
)
def test_each_pod_runs_a_command_with_the_settings(
    pod: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Configuration] = []
    monkeypatch.setattr("truck_pipeline.__main__.COMMANDS", {
        name: type(one)(lambda configuration: called.append(configuration), one.needs, one.options) for name, one in COMMANDS.items()
    })  # fmt: skip
    monkeypatch.delenv(DATABASE, raising=False)
    for variable in container(pod)["env"]:
        if "secretKeyRef" in variable.get("valueFrom", {}):
            monkeypatch.setenv(variable["name"], "postgresql://here/db")
    (mounted := tmp_path / "pipeline.toml").write_text(FILES["pipeline.toml"])
    assert container(pod)["command"] == ["truck-pipeline"]
    name, settings = container(pod)["args"]
    assert name == command
    main([name, settings.replace("/etc/pipeline/pipeline.toml", str(mounted))])
    [configuration] = called
    folders = {mount["mountPath"] for mount in container(pod)["volumeMounts"]}
    assert {configuration.checkpoint.folder, "/etc/pipeline", "/tmp"} <= folders
    assert configuration.lake is not None and (configuration.lake.folder in folders) == ("lake" in COMMANDS[command].needs)


def test_probes_and_prometheus_ask_the_endpoint() -> None:
    driver, metadata = container("pipeline"), STREAM[-1]["spec"]["template"]["metadata"]
    assert metadata["annotations"]["prometheus.io/port"] == str(Configuration.model_fields["metrics"].default.port)
    [port] = [port["containerPort"] for port in driver["ports"] if port["name"] == "metrics"]
    assert port == Configuration.model_fields["metrics"].default.port
    asked = {probe: driver[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    live = {"path": "/live", "port": "metrics"}
    assert asked == {"startupProbe": live, "livenessProbe": live, "readinessProbe": {"path": "/ready", "port": "metrics"}}
    [service] = [part for part in STREAM if part["kind"] == "Service"]
    assert service["spec"]["publishNotReadyAddresses"]  # or executors never find a driver that waits for them


def test_a_batch_may_wait_as_long_as_the_settings_say() -> None:
    assert PODS["pipeline"]["terminationGracePeriodSeconds"] > Settings.wait
    silence = Configuration.model_fields["metrics"].default.silence
    assert milliseconds(silence) / 1000 > 2 * Settings.wait  # for PostgreSQL and then for the registry


def test_no_pod_may_do_more_than_it_needs() -> None:
    for pod in (*PODS.values(), EXECUTOR["spec"]):
        user = pod["securityContext"]
        assert user["runAsNonRoot"] and user["seccompProfile"] == {"type": "RuntimeDefault"}
        for one in pod["containers"]:
            rights = one["securityContext"]
            assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
    assert all(container(pod)["resources"]["limits"].keys() == {"cpu", "memory"} for pod in PODS)


def test_spark_reads_its_settings_and_executors_what_is_theirs() -> None:
    stream, jobs = (dict(line.split(maxsplit=1) for line in FILES[name].splitlines()) for name in ("stream.conf", "jobs.conf"))
    assert stream["spark.kubernetes.container.image"] == container("pipeline")["image"]
    assert stream["spark.kubernetes.executor.podTemplateContainerName"] == EXECUTOR["spec"]["containers"][0]["name"]
    assert jobs["spark.master"] == "local[2]"
    for pod in PODS:
        [volume] = [volume for volume in PODS[pod]["volumes"] if volume["name"] == "settings"]
        paths = {item["path"]: item["key"] for item in volume["configMap"]["items"]}
        assert set(paths.values()) <= FILES.keys()
        assert paths["spark/spark-defaults.conf"] == ("stream.conf" if pod == "pipeline" else "jobs.conf")
        assert {"name": "SPARK_CONF_DIR", "value": "/etc/pipeline/spark"} in container(pod)["env"]
    assert stream["spark.kubernetes.executor.podTemplateFile"] == "/etc/pipeline/executor.yaml"


def test_the_image_has_sparks_packages() -> None:
    [named] = re.findall(r"--packages (\S+)", RECIPE)
    assert set(required_packages(delta=True)) <= set(named.split(","))
    jars = [line.split("  ")[1] for line in (ROOT / "deploy/jars.sha256").read_text().splitlines()]
    assert {"{}_{}-{}.jar".format(*package.split(":")) for package in named.split(",")} <= set(jars)
    usage = __main__.__doc__ or ""
    settings = [f"{name}={value}" for name, value in DELTA_SETTINGS.items()]
    assert all(name in usage for name in [*required_packages(delta=True), *settings])


def test_the_image_has_a_python_for_the_package_and_its_spark() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [python] = set(re.findall(r"\bpython(3[\d.]+)(?=[ /-])", RECIPE.partition("\nFROM")[2]))
    assert SpecifierSet(project["requires-python"]).contains(python)
    [spark] = re.findall(r"FROM apache/spark:(\S+)", RECIPE)
    assert f"pyspark=={spark}" in project["dependencies"] and f"spark-examples_2.13-{spark}.jar" in RECIPE
    images = {one["image"] for pod in PODS.values() for one in pod["containers"]}
    assert set(re.findall(r"registry\.example\.com/\S+", RECIPE + README)) == images


def test_the_image_has_what_the_package_needs_and_no_more() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    needed = {Requirement(one).name for one in project["dependencies"]}
    assert needed - locked == {"pyspark", "py4j"}  # Spark's own
    assert not {name for name in locked if re.match(r"jupyter|pixeltable|pandas|ipython|pytest", name)}
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*)", RECIPE, re.MULTILINE) for name in line.split()[:-1]]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) == kept and all((ROOT / name).exists() for name in copied)


def samples() -> set[str]:
    """The names under which Prometheus stores the metrics. A counter's or histogram's time of creation isn't for panels."""
    families = Metrics().registry.collect()
    return {sample.name for family in families for sample in family.samples if not sample.name.endswith("_created")}


def test_the_dashboard_shows_all_metrics_that_there_are() -> None:
    dashboard = json.loads((ROOT / "deploy/dashboard.json").read_text())
    shown = {name for panel in dashboard["panels"] for target in panel["targets"] for name in NAMES.findall(target["expr"])}
    histogram = {f"truck_pipeline_batch_seconds_{part}" for part in ("count", "sum")}  # the panel has its quantiles
    assert shown == samples() - histogram
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


NAMES = re.compile(r"truck_pipeline_\w+")


def test_readme_lists_all_metrics_and_commands() -> None:
    listed = set(re.findall(r"^\| `(truck_pipeline_\w+)` \|", README, re.MULTILINE))
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in Metrics().registry.collect()}
    assert listed == names
    assert set(re.findall(r"^\| `([a-z-]+)` \|", README, re.MULTILINE)) == COMMANDS.keys()
