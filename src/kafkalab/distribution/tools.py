"""Kafka's own command-line tools, under their own names."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from kafkalab.distribution.archive import archive_path, classpath
from kafkalab.distribution.java import java_command, write_script
from kafkalab.paths import cache_dir

__all__ = ["JVM_OPTIONS", "TOOLS", "install_tools", "put_tools_on_path", "tools_dir"]

JVM_OPTIONS = ("-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""For JVMs that must start fast and stay small: one collector thread, the quick compiler, no statistics file."""

# Name → main class, as in the scripts of Kafka's bin folder.
TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-server-start": "kafka.Kafka",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


def tools_dir() -> Path:
    """The folder of the commands."""
    return cache_dir() / "bin"


def install_tools() -> Path:
    """Write one script per tool, with and without ``.sh``, and return their folder.

    Each is the real Java tool, started with the class-data archive where there is one. ``KAFKA_OPTS``,
    ``KAFKA_HEAP_OPTS`` and ``CLASSPATH`` work as with Kafka's own scripts.
    """
    java, classes, archive = (shlex.quote(str(x)) for x in (java_command(), classpath(), archive_path()))
    log_settings = shlex.quote(str(Path(__file__).with_name("tools-log4j2.properties")))
    for name, main in TOOLS.items():
        heap = "256m" if "perf" in name or name in ("kafka-server-start", "kafka-metadata-shell") else "128m"
        text = (
            "#!/bin/sh\n"
            f"# Apache Kafka's {name}\n"
            f"exec {java} ${{KAFKA_HEAP_OPTS:--Xmx{heap}}} {' '.join(JVM_OPTIONS)} "
            f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr "
            f"-Dlog4j2.configurationFile={log_settings} $KAFKA_OPTS -cp {classes}${{CLASSPATH:+:$CLASSPATH}} {main} \"$@\"\n"
        )
        for file_name in (name, f"{name}.sh"):
            write_script(tools_dir() / file_name, text)
    return tools_dir()


def put_tools_on_path() -> None:
    """Let this process and those that it starts (``!kafka-topics.sh …`` in a cell) find the tools."""
    folder = str(install_tools())
    path = os.environ.get("PATH", "").split(os.pathsep)
    if folder not in path:
        os.environ["PATH"] = os.pathsep.join([folder, *path])
