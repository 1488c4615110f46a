"""The session of the command line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from truck_pipeline.session import DELTA_SETTINGS, packages, start_session

PARTITIONS = "spark.sql.shuffle.partitions"


class Session:
    """Stands for the session that a builder would start, with what Spark's own files of settings say."""

    defaults: dict[str, str] = {}

    def __init__(self, builder: SparkSession.Builder) -> None:
        self.options = dict(vars(builder)["_options"])
        self.set: dict[str, str] = {}
        self.conf = SimpleNamespace(set=self.set.__setitem__)
        self.sparkContext = SimpleNamespace(getConf=lambda: SimpleNamespace(contains=self.defaults.__contains__))


@pytest.fixture(autouse=True)
def nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: Session(builder))
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


def started(delta: bool = False) -> Any:
    return start_session(delta)


def test_python_starts_spark_with_all_it_needs() -> None:
    session = started()
    assert session.options == {
        "spark.app.name": "truck-pipeline",
        "spark.jars.packages": ",".join(packages()),
        "spark.ui.showConsoleProgress": "false",
    }
    assert session.set == {PARTITIONS: "8"}
    lake = started(delta=True).options
    assert lake["spark.jars.packages"] == ",".join(packages(delta=True)) and DELTA_SETTINGS.items() <= lake.items()
    assert set(packages()) < set(packages(delta=True))


def test_spark_downloads_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the image, where the resolver's names have the group in front."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    *connectors, delta = packages(delta=True)
    for package in connectors:
        group, name, version = package.split(":")
        (tmp_path / f"jars/{group}_{name}-{version}.jar").touch()
    assert "spark.jars.packages" not in started().options
    assert started(delta=True).options["spark.jars.packages"] == delta


def test_sparks_own_settings_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "defaults", {PARTITIONS: "64"})
    assert started().set == {}


@pytest.mark.parametrize(("name", "value"), [("PYSPARK_GATEWAY_PORT", "4711"), ("SPARK_REMOTE", "sc://server")])
def test_a_session_that_runs_elsewhere_keeps_its_settings(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    session = started(delta=True)
    assert session.options == {"spark.app.name": "truck-pipeline"} and session.set == {}
