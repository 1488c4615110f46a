"""Recording what Kafka loads: a real cluster and the usual tools run once, and their classes go into the archive."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from kafkalab.cluster.backends.local import LocalBackend
from kafkalab.cluster.cluster import Cluster
from kafkalab.cluster.spec import ClusterSpec
from kafkalab.distribution import (
    JVM_OPTIONS,
    Report,
    build_archive,
    install_tools,
    kafka_archive,
    made_by_one,
    record_classes_option,
)
from kafkalab.errors import KafkaLabError
from kafkalab.lifeline import Run

__all__ = ["train_archive"]

_TOPIC = "archive-training"

# The tools of the lessons; each line runs one.
_COMMANDS = (
    f"kafka-topics --create --topic {_TOPIC} --partitions 3 --replication-factor 2",
    "kafka-topics --list",
    f"kafka-topics --describe --topic {_TOPIC}",
    f"kafka-producer-perf-test --topic {_TOPIC} --num-records 20 --record-size 10 --throughput -1",
    f"kafka-console-consumer --topic {_TOPIC} --from-beginning --max-messages 20 --group training --timeout-ms 20000",
    "kafka-consumer-groups --describe --group training",
    f"kafka-configs --describe --entity-type topics --entity-name {_TOPIC}",
    "kafka-metadata-quorum describe --status",
    f"kafka-leader-election --election-type preferred --topic {_TOPIC} --partition 0",
    f"kafka-get-offsets --topic {_TOPIC}",
)


def train_archive(report: Report | None = None) -> Path:
    """Run a cluster of three and the tools, and build the class-data archive from what they loaded.

    If another process builds it just now, this one waits for that.

    Parameters
    ----------
    report
        Told which step is under way.

    Returns
    -------
    Path
        The archive, which clusters and tools use from now on.
    """
    archive = kafka_archive()
    with made_by_one(archive.folder, "Kafka's class-data archive", report):
        return archive.path if archive.is_whole(thoroughly=True) else _train(report)


def _train(report: Report | None) -> Path:
    steps = len(_COMMANDS) + 2

    def step(number: int, what: str) -> None:
        if report:
            report(what, number, steps)

    kafka_archive().path.unlink(missing_ok=True)  # classes that come from an archive would not be recorded
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create("training")
        record = record_classes_option(Path(folder, "node-{node}.classes"))
        cluster = Cluster(backend=LocalBackend.name, name="training")
        step(0, "starting a cluster to see what Kafka loads")
        try:
            cluster.launch_on(LocalBackend(ClusterSpec(), run, (f"-Xmx{cluster.spec.heap}", *JVM_OPTIONS, record)))
            tools = install_tools()
            for number, command in enumerate(_COMMANDS, 1):
                step(number, f"running {command.split()[0]}")
                _run(tools, command, cluster.bootstrap_servers, Path(folder, f"tool-{number}.classes"))
            for broker in (0, 1):  # a JVM writes its list when it ends in order, for which the cluster needs a majority
                cluster.stop_broker(broker)
        finally:
            cluster.stop()
        step(steps - 1, "writing the class-data archive")
        archive = build_archive(sorted(Path(folder).glob("*.classes")))
        step(steps, "class-data archive ready")
    return archive


def _run(tools: Path, command: str, bootstrap_servers: str, classes: Path) -> None:
    name, *arguments = command.split()
    done = subprocess.run(
        [tools / name, "--bootstrap-server", bootstrap_servers, *arguments],
        env={**os.environ, "KAFKA_OPTS": record_classes_option(classes)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if done.returncode != 0:
        raise KafkaLabError(f"{name} failed while its classes were recorded: {(done.stderr or done.stdout)[-500:]}")
