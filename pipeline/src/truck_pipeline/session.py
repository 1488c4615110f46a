"""The Spark session of the command line, and what it needs besides Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

__all__ = ["DELTA_SETTINGS", "has_jvm", "packages", "start_session"]

_CONNECTORS = ("spark-sql-kafka-0-10", "spark-avro")
_DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"  # the version for Spark 4.2

DELTA_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Settings that make a session read and write Delta tables."""

# Such a session runs in a JVM that somebody else started, with its packages: spark-submit, or a Spark Connect server.
_STARTED_ELSEWHERE = {"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"}

_PARTITIONS = "spark.sql.shuffle.partitions"


def packages(delta: bool = False) -> list[str]:
    """Return the Maven coordinates of what a session needs: Spark's Kafka and Avro connectors, and Delta Lake if wanted."""
    connectors = [f"org.apache.spark:{name}_2.13:{pyspark.__version__}" for name in _CONNECTORS]
    return [*connectors, _DELTA] if delta else connectors


def start_session(delta: bool = False) -> SparkSession:
    """Return the session of ``spark-submit`` or of a Spark Connect server, or start one here.

    Spark's own settings come from its ``conf/spark-defaults.conf`` or ``PYSPARK_SUBMIT_ARGS``. Spark downloads packages that
    aren't among its jars.
    """
    builder = SparkSession.builder.appName("truck-pipeline")
    if _STARTED_ELSEWHERE & os.environ.keys():
        return builder.getOrCreate()
    missing = [package for package in packages(delta) if not _has_jar(package)]
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.showConsoleProgress": "false",  # its bars would stand between the lines of the log
        **({"spark.jars.packages": ",".join(missing)} if missing else {}),
        **(DELTA_SETTINGS if delta else {}),
    }
    spark = builder.config(map=settings).getOrCreate()
    if not spark.sparkContext.getConf().contains(_PARTITIONS):
        spark.conf.set(_PARTITIONS, "8")  # Spark's own default, 200, is for large clusters
    return spark


def _has_jar(package: str) -> bool:
    """Return whether Spark's folder of jars has a package. The resolver puts the group in front of its file's name."""
    home = Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0])
    _, name, version = package.split(":")
    return any(home.glob(f"jars/*{name}-{version}.jar"))


def has_jvm(spark: SparkSession) -> bool:
    """Return whether a session has a JVM in this process. A Spark Connect session only looks like a `SparkSession`."""
    return isinstance(spark, SparkSession)
