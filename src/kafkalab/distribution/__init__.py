"""A verified Kafka on disk: its jars, a Java to run it, the class-data archive, its command-line tools."""

from __future__ import annotations

import os
from pathlib import Path

from kafkalab.distribution.archive import (
    ClassDataArchive,
    archive_options,
    archive_path,
    classpath,
    kafka_archive,
)
from kafkalab.distribution.commands import keep_all_output
from kafkalab.distribution.features import highest_metadata_version
from kafkalab.distribution.gssapi import gssapi_support
from kafkalab.distribution.jars import (
    KAFKA_VERSION,
    KAFKA_VERSIONS,
    Jar,
    ensure_jars,
    faulty_jars,
    jars_dir,
    lock_digest,
    locked_jars,
)
from kafkalab.distribution.java import java_command, java_home, java_version, spark_java_command
from kafkalab.distribution.shared import Report, announce, environment_dir, made_by_one, sweep, warn
from kafkalab.distribution.storage import bootstrap_checkpoint, format_log_dir, is_bootstrapped, random_uuid
from kafkalab.distribution.tools import CONNECT_TOOLS, JVM_OPTIONS, TOOLS, install_tools, put_tools_on_path, tools_dir

__all__ = [
    "CONNECT_TOOLS",
    "JVM_OPTIONS",
    "KAFKA_VERSION",
    "KAFKA_VERSIONS",
    "NODE_LOG_SETTINGS",
    "TOOLS",
    "ClassDataArchive",
    "Jar",
    "Report",
    "announce",
    "archive_options",
    "archive_path",
    "bootstrap_checkpoint",
    "classpath",
    "connect_classpath",
    "connect_plugins",
    "ensure_jars",
    "environment_dir",
    "faulty_jars",
    "format_log_dir",
    "gssapi_support",
    "highest_metadata_version",
    "install_tools",
    "is_bootstrapped",
    "jars_dir",
    "java_command",
    "java_home",
    "java_version",
    "kafka_archive",
    "keep_all_output",
    "lock_digest",
    "locked_jars",
    "made_by_one",
    "put_tools_on_path",
    "random_uuid",
    "spark_jars",
    "spark_java_command",
    "sweep",
    "tools_dir",
    "warn",
]

NODE_LOG_SETTINGS = Path(__file__).with_name("node-log4j2.properties")
"""Log settings of a node. The system property ``kafkalab.log`` names the file."""


def connect_classpath(report: Report | None = None) -> str:
    """Return the class path of Connect and MirrorMaker. Its jars are verified, and downloaded on first use.

    It begins with the class path of brokers and tools, so that their class-data archive is valid for it.
    """
    return os.pathsep.join([classpath(), *map(str, ensure_jars("mirror", report))])


def connect_plugins(report: Report | None = None) -> list[Path]:
    """Return the jars of the workers' built-in connectors, verified, and downloaded on first use."""
    return ensure_jars("connect", report)


def spark_jars() -> list[Path]:
    """Return Spark's Kafka connector and its dependencies, verified, and downloaded on first use."""
    return ensure_jars("spark")
