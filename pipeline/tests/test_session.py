"""The session of the command line."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from truck_pipeline.session import DELTA_SETTINGS, packages, start_session


@pytest.fixture(autouse=True)
def nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder stands for the session that it would start."""
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: builder)
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)


def test_python_starts_spark_with_all_it_needs() -> None:
    assert vars(start_session())["_options"] == {
        "spark.app.name": "truck-pipeline",
        "spark.jars.packages": ",".join(packages()),
        "spark.sql.shuffle.partitions": "8",
    }
    lake = vars(start_session(delta=True))["_options"]
    assert lake["spark.jars.packages"] == ",".join(packages(delta=True)) and DELTA_SETTINGS.items() <= lake.items()
    assert set(packages()) < set(packages(delta=True))


@pytest.mark.parametrize(("name", "value"), [("PYSPARK_GATEWAY_PORT", "4711"), ("SPARK_REMOTE", "sc://server")])
def test_a_session_that_runs_elsewhere_keeps_its_settings(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert vars(start_session(delta=True))["_options"] == {"spark.app.name": "truck-pipeline"}
