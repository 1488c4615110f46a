"""Kafka of another version than the course's own: its jars, its storage format, its class-data archive, its tools."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.distribution import (
    JVM_OPTIONS,
    KAFKA_VERSION,
    KAFKA_VERSIONS,
    NODE_LOG_SETTINGS,
    archive_options,
    classpath,
    ensure_jars,
    format_log_dir,
    install_tools,
    java_command,
    random_uuid,
)
from kafkalab.distribution.storage import bootstrap_checkpoint
from kafkalab.lifeline import Run, reap
from kafkalab.waiting import wait_until
from support import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.network]  # the first time, the jars are downloaded

OTHER = next(version for version in KAFKA_VERSIONS if version != KAFKA_VERSION)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker of the other version, started by hand."""
    run = Run.create("version")
    with reserve_port() as port, reserve_port() as controller:
        format_log_dir(run.directory / "data", random_uuid(), 0, version=OTHER)
        settings = run.directory / "server.properties"
        settings.write_text(f"""\
process.roles=broker,controller
node.id=0
listeners=PLAINTEXT://{HOST}:{port.port},CONTROLLER://{HOST}:{controller.port}
controller.listener.names=CONTROLLER
controller.quorum.voters=0@{HOST}:{controller.port}
log.dirs={run.directory / "data"}
log.cleaner.dedupe.buffer.size=4194304
offsets.topic.replication.factor=1
""")
        log = run.directory / "node.log"
        command = [
            *(str(java_command()), "-Xmx96m", *JVM_OPTIONS, *archive_options(OTHER)),
            *(f"-Dlog4j2.configurationFile={NODE_LOG_SETTINGS}", f"-Dkafkalab.log={log}", f"-Djava.io.tmpdir={run.directory}"),
            *("-cp", classpath(OTHER), "kafka.Kafka", str(settings)),
        ]
        subprocess.Popen(command, env=run.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        try:
            admin = AdminClient({"bootstrap.servers": f"{HOST}:{port.port}", "log_level": 0})
            wait_until(
                lambda: admin.list_topics(timeout=5).brokers, PATIENCE, "the broker to answer", ignore=(Exception,),
                last_seen=lambda: log.read_text()[-2000:] if log.exists() else "no log",
            )  # fmt: skip
            yield f"{HOST}:{port.port}"
        finally:
            reap(run)


def test_its_jars_are_its_own() -> None:
    names = {path.name for path in ensure_jars("kafka", version=OTHER)}
    assert f"kafka_2.13-{OTHER}.jar" in names
    assert not any(KAFKA_VERSION in name for name in names)


def test_its_storage_begins_with_its_features() -> None:
    assert bootstrap_checkpoint(OTHER) != bootstrap_checkpoint()


def test_its_archive_is_made_from_the_own_one() -> None:
    [option] = [option for option in archive_options(OTHER) if "SharedArchiveFile" in option]
    command = [java_command(), option, "-Xshare:on", "-Xlog:class+load", "-cp", classpath(OTHER)]
    asked = [*command, "org.apache.kafka.tools.TopicCommand", "--help"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    assert "org.apache.kafka.tools.TopicCommand source: shared objects file" in done.stdout


def test_its_broker_answers(address: str, tmp_path: Path) -> None:
    tools = install_tools(OTHER)
    ask = [str(tools / "kafka-broker-api-versions.sh"), "--bootstrap-server", address]
    assert "ApiVersions" in subprocess.run(ask, check=True, capture_output=True, text=True).stdout
    asked = [str(tools / "kafka-topics.sh"), "--version"]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout.startswith(OTHER)
    features = [str(install_tools() / "kafka-features.sh"), "--bootstrap-server", address, "describe"]
    told = subprocess.run(features, check=True, capture_output=True, text=True).stdout
    assert f"FinalizedVersionLevel: {'.'.join(OTHER.split('.')[:2])}" in told
    admin = AdminClient({"bootstrap.servers": address})
    assert admin.create_topics([NewTopic("a", 1, 1)])["a"].result(PATIENCE) is None
