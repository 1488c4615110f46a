"""Where a session of Spark's is to run: by argument, by variable, or here; and a clear error where there is no master."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from kafkalab.cluster.ports import HOST
from kafkalab.errors import NotEnoughResources, SparkFailed
from kafkalab.lifeline import Run
from kafkalab.paths import runs_dir
from kafkalab.spark import remote, session
from kafkalab.spark.jvm import start_jvm
from kafkalab.spark.masters import Master, choose_master, without_secrets
from kafkalab.spark.session import start_session


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKALAB_SPARK_MASTER", "KAFKALAB_SPARK_SETTINGS", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("_gateway", "_active_spark_context"):  # a JVM that earlier tests of this worker left
        monkeypatch.setattr(SparkContext, name, None)


@pytest.fixture
def master() -> Iterator[str]:
    """Something listens there."""
    with socket.create_server((HOST, 0)) as server:
        yield f"{HOST}:{server.getsockname()[1]}"


@pytest.fixture
def nowhere() -> str:
    """Nothing does."""
    with socket.create_server((HOST, 0)) as server:
        return f"{HOST}:{server.getsockname()[1]}"


def test_here_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_master(None).url == "local[2]"
    monkeypatch.setenv("KAFKALAB_SPARK_MASTER", "local[4]")
    assert choose_master(None).url == "local[4]" and choose_master("local").url == "local"


@pytest.mark.parametrize("form", ["spark://{}", "k8s://http://{}", "k8s://{}"])
def test_the_address_of_a_master(form: str, master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_SPARK_MASTER", form.format(master))
    monkeypatch.setenv("KAFKALAB_SPARK_SETTINGS", json.dumps({"spark.executor.memory": "1g", "spark.authenticate": True}))
    chosen = choose_master(None)
    assert chosen.url == form.format(master)
    assert chosen.settings["spark.driver.host"] == HOST  # as the master sees this machine
    assert chosen.settings["spark.executor.memory"] == "1g" and chosen.settings["spark.authenticate"] == "true"
    assert "spark-sql-kafka" in chosen.settings["spark.jars"]


def test_checkpoints_elsewhere_are_kept_as_spark_does(master: str) -> None:
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    assert "FileSystemBased" in choose_master(None).settings[manager]
    assert manager not in choose_master(f"spark://{master}").settings


def test_the_address_of_a_spark_connect_server(master: str, nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_SPARK_SETTINGS", json.dumps({"spark.sql.shuffle.partitions": 4}))
    chosen = choose_master(f"sc://{master}/;token=secret")
    assert chosen.remote and chosen.settings == {"spark.sql.shuffle.partitions": "4"} and not chosen.classpath
    assert "secret" not in repr(chosen) and not choose_master(f"spark://{master}").remote
    assert without_secrets("sc://host/;token=secret") == "sc://host:15002"
    with pytest.raises(SparkFailed, match=f"no Spark master answers at sc://{nowhere} .*refused"):
        start_session("test", f"sc://{nowhere}/;token=secret")


def test_a_server_that_does_not_speak_spark_connect(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_SECONDS", 0.1)
    with pytest.raises(SparkFailed, match=f"something listens at sc://{master}, but it doesn't speak Spark Connect"):
        start_session("test", f"sc://{master}")
    with pytest.raises(SparkFailed, match=f"sc://{master} has to be followed by parameters as in") as told:
        start_session("test", f"sc://{master}/;token=secret==")
    assert "secret" not in str(told.value)


def test_one_of_two_masters_answers(master: str, nowhere: str) -> None:
    assert choose_master(f"spark://{nowhere},{master}").url == f"spark://{nowhere},{master}"


def test_a_master_that_is_not_there(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_SPARK_MASTER", f"spark://{nowhere}")
    before, began = set(runs_dir().glob("spark-*")), time.monotonic()
    with pytest.raises(SparkFailed, match=f"no Spark master answers at spark://{nowhere} .*refused.*KAFKALAB_SPARK_MASTER"):
        start_session("test")
    assert time.monotonic() - began < 10
    assert set(runs_dir().glob("spark-*")) == before and SparkContext._gateway is None
    with pytest.raises(SparkFailed, match="no Spark master answers at k8s://"):
        choose_master(f"k8s://https://{nowhere}")


@pytest.mark.parametrize("url", ["spark://host", "spark://", "k8s://", "sc://", "sc://host:http", "host:7077", "local[two]"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(SparkFailed, match="is no address of a Spark master"):
        choose_master(url)


def test_yarn_needs_hadoops_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(SparkFailed, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR names a folder"):
        choose_master("yarn")
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    chosen = choose_master("yarn")
    assert chosen.classpath == (str(tmp_path),) and chosen.settings["spark.driver.host"] == socket.gethostname()


@pytest.mark.parametrize("text", ["spark.executor.memory=1g", "[1]"])
def test_settings_that_are_no_json(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_SPARK_SETTINGS", text)
    with pytest.raises(SparkFailed, match="KAFKALAB_SPARK_SETTINGS should be JSON"):
        choose_master("local")


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.resources.available_memory", lambda: 200 << 20)
    before = set(runs_dir().glob("spark-*"))
    with pytest.raises(NotEnoughResources, match="Spark needs about 400 MB of memory, but only 200 MB are free"):
        start_session("test")
    assert set(runs_dir().glob("spark-*")) == before


def test_a_jvm_that_another_thread_is_killing_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    dying = SimpleNamespace(poll=lambda: ended[0] if ended else None, wait=lambda: ended.append(-9))
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=dying, shutdown=lambda: None))
    for owner, name in ((SparkContext, "_jvm"), (SparkSession, "_instantiatedSession")):
        monkeypatch.setattr(owner, name, "of the JVM that dies")
    monkeypatch.setattr(session, "_killed", dying)
    session._forget_dead_jvm()
    assert SparkContext._gateway is None and SparkContext._jvm is None and SparkSession._instantiatedSession is None


def test_pyspark_of_another_spark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.1")
    with pytest.raises(
        SparkFailed, match=r"Python has loaded PySpark 3\.5\.1 from .*pyspark, not the course's 4\..*PYTHONPATH"
    ):
        start_jvm(Run("never-made"), "16m")


class ForeignSession:
    """A session of somebody else's, with or without the Kafka source."""

    def __init__(self, kafka: bool) -> None:
        self._kafka = kafka
        self.read = self

    def __getattr__(self, name: str) -> object:
        return lambda *_, **__: self

    @property
    def schema(self) -> str:
        if not self._kafka:
            raise AnalysisException("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka")
        return "schema"


def started_by_hand(monkeypatch: pytest.MonkeyPatch, session: ForeignSession, place: str) -> None:
    remote_one = session if place.startswith("sc://") else None
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=None))
    monkeypatch.setattr("kafkalab.spark.session.remote_session", lambda: remote_one)
    monkeypatch.setattr("kafkalab.spark.session._running", lambda: Master(place, {"spark.app.name": "mine"}))
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _: session)


@pytest.mark.parametrize("place", ["local[*]", "spark://host:7077", "sc://localhost:15002"])
def test_a_session_that_cannot_read_kafka_is_named(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started_by_hand(monkeypatch, ForeignSession(kafka=False), place)
    with pytest.raises(SparkFailed, match=r"a Spark session already \('mine', .*\) that can't read Kafka.*stop\(\)") as told:
        start_session("test")
    assert place in str(told.value)


@pytest.mark.parametrize("place", ["local[*]", "sc://localhost:15002"])
def test_a_session_of_ones_own_that_can_is_taken(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own: object = ForeignSession(kafka=True)
    started_by_hand(monkeypatch, own, place)
    assert start_session("test") is own


def test_the_jvm_of_a_stopped_session_of_ones_own_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    process = SimpleNamespace(kill=lambda: ended.append("kill"), wait=lambda: ended.append("wait"), poll=lambda: None)
    gateway = SimpleNamespace(proc=process, shutdown=lambda: ended.append("shutdown"))
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    session._end_foreign_jvm()
    assert ended == ["shutdown", "kill", "wait"] and SparkContext._gateway is None
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr(session, "_gateway", gateway)  # the course's own
    session._end_foreign_jvm()
    assert len(ended) == 3 and SparkContext._gateway is gateway
