"""Kafka's own command-line tools, under their own names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from kafkalab.distribution.archive import archive_options, archive_path, classpath
from kafkalab.distribution.jars import KAFKA_VERSION, jars_dir, locked_jars
from kafkalab.distribution.java import java_command, write_script
from kafkalab.distribution.shared import environment_dir
from kafkalab.environment import JAVA_OPTIONS, LOCALE, OPTIONS_OF_OTHERS, inherited

__all__ = ["CONNECT_TOOLS", "JVM_OPTIONS", "TOOLS", "install_tools", "put_tools_on_path", "run_tool", "tools_dir"]

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
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-jmx": "org.apache.kafka.tools.JmxTool",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-server-start": "kafka.Kafka",
    "kafka-share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}


# In the jars of Connect and MirrorMaker, which are downloaded when you first call one of these.
CONNECT_TOOLS = {
    "connect-distributed": "org.apache.kafka.connect.cli.ConnectDistributed",
    "connect-mirror-maker": "org.apache.kafka.connect.mirror.MirrorMaker",
    "connect-plugin-path": "org.apache.kafka.tools.ConnectPluginPath",
    "connect-standalone": "org.apache.kafka.connect.cli.ConnectStandalone",
}

# A terminal's environment is what the learner's shell made it. So each tool drops what was meant for other Javas itself. Its
# numbers and file names are the same in every locale.
_OWN_ENVIRONMENT = (
    f"unset {' '.join(OPTIONS_OF_OTHERS)}\n"
    'case "$(export -p)" in *[Ll][Oo][Gg]4[Jj]*)\n'
    "  for name in $(env | sed -n 's/^\\([Ll][Oo][Gg]4[Jj][A-Za-z0-9_]*\\)=.*/\\1/p'); do unset \"$name\"; done ;;\n"
    "esac\n" + "".join(f"export {name}={value}\n" for name, value in LOCALE.items())
)

# These run for a long time, or hold a lot in memory.
_LARGE = re.compile(r"perf|^kafka-server-start$|^kafka-metadata-shell$|^connect-")


def tools_dir(version: str | None = None) -> Path:
    """Return the folder of a Kafka version's commands. Each environment has its own, because they name its Java."""
    return environment_dir(java_command()) / ("bin" if version in (None, KAFKA_VERSION) else f"bin-{version}")


def install_tools(version: str | None = None) -> Path:
    """Write one script per tool, with and without ``.sh``, and return their folder.

    Each script starts the real Java tool, with the class-data archive if there is one. ``KAFKA_OPTS``,
    ``KAFKA_HEAP_OPTS`` and ``CLASSPATH`` work as with Kafka's own scripts. Options for every Java, such as
    ``JAVA_TOOL_OPTIONS``, don't: they add a line to what a tool prints.

    Parameters
    ----------
    version
        The Kafka version, by default the course's own. Only that one has the tools of Connect and MirrorMaker.
    """
    classes = classpath(version)
    archive_options(version)  # replaces a damaged archive
    for name, main in TOOLS.items():
        _install(name, main, classes, version)
    if version in (None, KAFKA_VERSION):
        jars = [jars_dir("mirror") / jar.file_name for jar in locked_jars("mirror")]
        fetch = "from kafkalab.distribution import announce, ensure_jars; ensure_jars('mirror', announce)"
        first = f'[ -e {shlex.quote(str(jars[-1]))} ] || {shlex.quote(sys.executable)} -c "{fetch}" || exit\n'
        for name, main in CONNECT_TOOLS.items():
            _install(name, main, os.pathsep.join([classes, *map(str, jars)]), version, first)
    return tools_dir(version)


def _install(name: str, main: str, classes: str, version: str | None, first: str = "") -> None:
    java, path, archive = (shlex.quote(str(x)) for x in (java_command(), classes, archive_path(version)))
    log_settings = shlex.quote(str(Path(__file__).with_name("tools-log4j2.properties")))
    heap = "256m" if _LARGE.search(name) else "128m"
    text = (
        "#!/bin/sh\n"
        f"# Apache Kafka's {name}\n{_OWN_ENVIRONMENT}{first}"
        f"exec {java} ${{KAFKA_HEAP_OPTS:--Xmx{heap}}} {' '.join(JVM_OPTIONS)} "
        f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr "
        f"-Dlog4j2.configurationFile={log_settings} ${{{JAVA_OPTIONS}-}} ${{KAFKA_OPTS-}} "
        f'-cp {path}${{CLASSPATH:+:$CLASSPATH}} {main} "$@"\n'
    )
    for file_name in (name, f"{name}.sh"):
        write_script(tools_dir(version) / file_name, text)


def run_tool(name: str, *arguments: str, version: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end, without a script, and return its exit status and output.

    Parameters
    ----------
    name
        One of `TOOLS`.
    *arguments
        Its arguments. Other users can see them.
    version
        The Kafka version, by default the course's own.
    """
    return subprocess.run(
        [java_command(), *JVM_OPTIONS, *archive_options(version), "-cp", classpath(version), TOOLS[name], *arguments],
        check=False, capture_output=True, text=True, env=inherited(),
    )  # fmt: skip


def put_tools_on_path() -> None:
    """Put the tools on the PATH of this process and those it starts (``!kafka-topics.sh …`` in a cell)."""
    folder = str(install_tools())
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    # First, also where it was already: another Kafka's tools have the same names.
    os.environ["PATH"] = os.pathsep.join([folder, *(other for other in path if other != folder)])
