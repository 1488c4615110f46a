"""The command ``truck-pipeline`` in a process of its own: its logs, metrics and probes, and how signals end it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from command_support import Process, spark_environment
from kafkalab import Cluster
from pipeline_support import SCHEMAS, prepare, send, settings_file
from small_registry import SmallRegistry
from support import empty
from truck_pipeline import Settings, Trucks, answers
from truck_pipeline.tables import Tables

pytestmark = pytest.mark.cluster

PASSWORD = "never-to-be-seen"
SCHEMA = "command"
TOPICS = Settings({}, "", "", "")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return spark_environment(tmp_path_factory.mktemp("spark")) | {"REGISTRY": PASSWORD}


def batches_in(log: Path) -> set[int]:
    """The numbers of the batches in one of Spark's logs."""
    return {int(path.name) for path in log.glob("[0-9]*")}


def settings(cluster: Cluster, registry: SmallRegistry, folder: Path) -> str:
    file = settings_file(
        folder,
        {"bootstrap.servers": cluster.bootstrap_servers},
        registry={"url": registry.url, "user": "pipeline", "password": "${REGISTRY}"},
        database={"schema": SCHEMA},
        checkpoint={"folder": f"{folder}/point"},
        lake={"folder": f"{folder}/lake"},
        metrics={"port": 0},
    )
    file.write_text(f"most = 100\n{file.read_text()}")
    return str(file)


@pytest.fixture
def tables(postgresql_server: str) -> Iterator[Tables]:
    tables = Tables(postgresql_server, SCHEMA)
    yield tables
    tables.drop()


def test_a_stream_says_what_it_does_and_ends_after_its_batch(
    cluster: Cluster, postgresql_server: str, tables: Tables, environment: dict[str, str], tmp_path: Path
) -> None:
    reports = Trucks(malformed=0.05).reports(300)
    wanted = answers(report.event for report in reports if report.event)
    dead = sum(report.event is None for report in reports)
    prepare(cluster, TOPICS)
    send(cluster, TOPICS, reports)
    with SmallRegistry(SCHEMAS) as registry:
        arguments = ("run", "--settings", settings(cluster, registry, tmp_path))
        with Process(environment | {"PIPELINE_DATABASE": postgresql_server}, tmp_path, *arguments) as stream:
            started = stream.wait_for_start()
            assert started["reads"] == ["truck_position", "driver"] and started["goes_on_from"] == "the beginning of the topic"
            batches = stream.wait_for_batches(wanted.events)
            assert tables.answers() == wanted
            with httpx2.Client(base_url=started["endpoint"], trust_env=False) as client:
                assert [client.get(path).status_code for path in ("/live", "/ready", "/else")] == [200, 200, 404]
                values = dict(line.split(" ") for line in client.get("/metrics").text.splitlines() if not line.startswith("#"))
            found = [float(values[f"truck_pipeline_{name}"]) for name in ("events_total", "dead_letters_total", "lag_records")]
            assert found == [wanted.events, dead, 0]
            assert 0 < batches[0]["rows"] <= 100 and batches[0]["lag"] > 100 and batches[0]["seconds"] > 0
            send(cluster, TOPICS, reports)  # all of them repeats, so that a batch may be on its way
            assert stream.end(signal.SIGTERM) == 0
            assert stream.lines("ending after the batch: SIGTERM") and stream.lines("the stream has ended")
            begun, done = (batches_in(tmp_path / "point/stream" / log) for log in ("offsets", "commits"))
            assert max(done) == stream.lines("stored a batch")[-1]["batch"] and begun - done <= {max(done) + 1}
        with Process(environment | {"PIPELINE_DATABASE": postgresql_server}, tmp_path, *arguments) as again:
            assert again.wait_for_start()["goes_on_from"] == "the checkpoint"
            assert again.end(signal.SIGINT) == 0 and again.lines("ending after the batch: SIGINT")
        assert tables.answers() == wanted
    for log in (stream.log, again.log):
        assert PASSWORD not in log and postgresql_server not in log


def test_the_lake_needs_no_database(cluster: Cluster, environment: dict[str, str], tmp_path: Path) -> None:
    empty(cluster)
    prepare(cluster, TOPICS)
    send(cluster, TOPICS, Trucks().reports(20))
    with SmallRegistry(SCHEMAS) as registry:
        arguments = ("lake", "--settings", settings(cluster, registry, tmp_path))
        with Process(environment, tmp_path, *arguments) as lake:
            assert lake.end() == 0, lake.log[-5000:]
    [filled] = lake.lines("filled the lake")
    assert filled["seconds"] > 0 and (tmp_path / "lake/silver").exists()
