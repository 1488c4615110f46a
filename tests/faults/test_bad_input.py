"""What is missing, broken or asked for in vain: a clear error each, before anything runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from kafkalab import Cluster, resources
from kafkalab.distribution import ensure_jars, faulty_jars, jars_dir, java_command, spark_java_command
from kafkalab.distribution import jars as jars_module
from kafkalab.errors import BackendUnavailable, BrokerFailed, DownloadError, HashMismatch, JavaError, NotEnoughResources


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own with all jars in it."""
    original = jars_dir("kafka")
    ensure_jars("kafka")
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path))
    shutil.copytree(original, jars_dir("kafka"))
    return tmp_path


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.network
@pytest.mark.parametrize("damage", [truncate, alter, Path.unlink])
def test_a_damaged_jar_is_refused_and_fetched_again(cache: Path, damage: Callable[[Path], object]) -> None:
    victim = jars_dir("kafka") / "jopt-simple-5.0.4.jar"
    whole = victim.read_bytes()
    damage(victim)
    assert [jar.file_name for jar in faulty_jars("kafka")] == [victim.name]
    reported: list[tuple[str, int, int]] = []
    assert victim in ensure_jars("kafka", lambda *progress: reported.append(progress))
    assert victim.read_bytes() == whole
    assert reported == [(f"downloading {victim.name}", len(whole), len(whole))]
    assert not list(cache.glob("download-*"))


def test_a_damaged_jar_without_a_network(cache: Path, no_network: None) -> None:
    truncate(jars_dir("kafka") / "jopt-simple-5.0.4.jar")
    with pytest.raises(
        DownloadError, match=r"1 of the jars.*jopt-simple-5\.0\.4\.jar.*Is there a network\?.*Reason: ProxyError: "
    ):
        ensure_jars("kafka")
    with pytest.raises(DownloadError):
        Cluster(1, backend="local").start()


def test_everything_works_offline_once_it_is_here(no_network: None) -> None:
    ensure_jars("kafka")
    ensure_jars("spark")
    with Cluster(1, backend="local") as cluster:
        assert cluster.describe().brokers[0].state == "up"


def test_nothing_in_the_cache_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: None) -> None:
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path))
    with pytest.raises(DownloadError, match=r"55 of the jars .*, …\).*kafkalab fetch"):
        ensure_jars("kafka")


@pytest.mark.network
def test_a_download_that_is_not_the_locked_file(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = jars_module.locked_jars("kafka")
    wrong = [jars_module.Jar(j.coordinate, j.bytes, "0" * 64) if "jopt-simple" in j.coordinate else j for j in real]
    monkeypatch.setattr(jars_module, "locked_jars", lambda *_: wrong)
    with pytest.raises(HashMismatch, match=r"jopt-simple-5\.0\.4\.jar is not the locked file"):
        ensure_jars("kafka")


# A cluster like the standby's would be taken from one that another test's course offers, and not start.
OWN = {"num.partitions": "2"}


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available_memory", lambda: 200 << 20)
    with pytest.raises(NotEnoughResources, match="a cluster of 3 nodes needs about 510 MB of memory, but only 200 MB are free"):
        Cluster(3, backend="local", settings=OWN).start()


def test_too_little_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = psutil.disk_usage("/")._replace(free=5 << 20)
    monkeypatch.setattr(psutil, "disk_usage", lambda _: usage)
    with pytest.raises(NotEnoughResources, match="at least 192 MB of disk, but only 5 MB are free"):
        Cluster(3, backend="local", settings=OWN).start()


def fake_java(home: Path, version: str) -> None:
    (home / "bin").mkdir(parents=True)
    java = home / "bin/java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)


def test_wrong_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    fake_java(tmp_path / "new", "25")
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("KAFKALAB_JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(JavaError, match="needs Java 17 or newer, but KAFKALAB_JAVA_HOME names Java 11"):
        Cluster(1, backend="local").start()
    monkeypatch.setenv("KAFKALAB_JAVA_HOME", str(tmp_path / "new"))
    assert java_command() == tmp_path / "new/bin/java"
    with pytest.raises(JavaError, match=r"Spark 4.2 runs on Java 17 to 23"):
        spark_java_command()
    monkeypatch.setenv("KAFKALAB_JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(JavaError, match="without bin/java"):
        java_command()


def test_docker_asked_for_and_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(BackendUnavailable, match="Docker was asked for, but no Docker engine answers"):
        Cluster(backend="docker")
    monkeypatch.setenv("KAFKALAB_BACKEND", "docker")
    with pytest.raises(BackendUnavailable, match="use backend='local'"):
        Cluster()
    monkeypatch.delenv("KAFKALAB_BACKEND")
    assert Cluster().nodes.backend == "local"  # nobody asked for Docker


def test_an_unknown_back_end_and_nothing_to_attach_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendUnavailable, match="no back end 'podman'; there are local, docker, attached"):
        Cluster(backend="podman")
    with pytest.raises(BackendUnavailable, match="no cluster to attach to"):
        Cluster(backend="attached")
    with pytest.raises(BackendUnavailable, match=r"no broker answers at 127.0.0.1:1"):
        Cluster.attached("127.0.0.1:1").start()


def test_a_broker_that_dies_at_start_tells_why() -> None:
    with pytest.raises(BrokerFailed) as caught:
        Cluster(1, backend="local", settings={"log.dirs": "/proc/nowhere"}).start()
    assert "log" in str(caught.value).lower() and "Its last lines" in str(caught.value)
