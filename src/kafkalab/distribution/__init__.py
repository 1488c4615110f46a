"""A verified Kafka on disk: its jars, a Java to run it, the class-data archive, its command-line tools."""

from __future__ import annotations

import os
from pathlib import Path

from kafkalab.distribution.archive import archive_options, archive_path, build_archive, classpath, record_classes_option
from kafkalab.distribution.commands import keep_all_output
from kafkalab.distribution.gssapi import gssapi_support
from kafkalab.distribution.jars import KAFKA_VERSION, Jar, Report, ensure_jars, faulty_jars, jars_dir
from kafkalab.distribution.java import java_command, java_home, java_version, spark_java_command
from kafkalab.distribution.storage import format_log_dir, random_uuid
from kafkalab.distribution.tools import JVM_OPTIONS, TOOLS, install_tools, put_tools_on_path, tools_dir

__all__ = [
    "JVM_OPTIONS",
    "KAFKA_VERSION",
    "NODE_LOG_SETTINGS",
    "TOOLS",
    "Jar",
    "Report",
    "archive_options",
    "archive_path",
    "build_archive",
    "classpath",
    "ensure_jars",
    "faulty_jars",
    "format_log_dir",
    "gssapi_support",
    "install_tools",
    "jars_dir",
    "java_command",
    "java_home",
    "java_version",
    "keep_all_output",
    "mirror_classpath",
    "put_tools_on_path",
    "random_uuid",
    "record_classes_option",
    "spark_jars",
    "spark_java_command",
    "tools_dir",
]

NODE_LOG_SETTINGS = Path(__file__).with_name("node-log4j2.properties")
"""Log settings of a node; the system property ``kafkalab.log`` names the file."""


def mirror_classpath(report: Report | None = None) -> str:
    """The class path of MirrorMaker; its jars are verified, and downloaded on first use.

    It begins with that of brokers and tools, so that their class-data archive is valid for it.
    """
    return os.pathsep.join([classpath(), *map(str, ensure_jars("mirror", report))])


def spark_jars() -> list[Path]:
    """Spark's Kafka connector and what it needs, verified; downloaded on first use."""
    return ensure_jars("spark")
