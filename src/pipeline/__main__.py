"""``python -m pipeline``, or ``spark-submit`` with this file: run the pipeline until it is ended.

``--batch`` works out the tables from the whole topic once. Spark needs two packages beside itself, of its own version::

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0,org.apache.spark:spark-avro_2.13:4.0.0 …

``--lake`` takes what is new into Delta tables. That needs ``io.delta:delta-spark_2.13:4.0.0`` and two settings, too::

    --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from pyspark.sql import SparkSession

from pipeline.app import Pipeline
from pipeline.lake import Lake
from pipeline.settings import Settings

_DATABASE = "PIPELINE_DATABASE"  # a URL holds a password, which others can read on a command line


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="pipeline", description="From what trucks report to answers.")
    add = parser.add_argument
    add("--bootstrap-servers", required=True, help="Kafka, as host:port")
    add(
        "--kafka",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="a setting of the client, such as security's",
    )
    add("--registry", required=True, help="URL of the schema registry")
    add("--database", default=os.environ.get(_DATABASE), help=f"URL of PostgreSQL; without it, ${_DATABASE}")
    add("--checkpoint", required=True, help="a folder that outlives this process")
    add("--schema", default="live", help="the schema of the tables (default: live)")
    once = parser.add_mutually_exclusive_group()
    once.add_argument("--batch", action="store_true", help="work out the tables once, and end")
    once.add_argument("--lake", metavar="FOLDER", help="take what is new into Delta tables in a folder, and end")
    given = parser.parse_args(arguments)
    if given.database is None and given.lake is None:
        parser.error(f"give --database, or set {_DATABASE}")
    client = {"bootstrap.servers": given.bootstrap_servers, **dict(given.kafka)}
    kafka = {f"kafka.{name}": value for name, value in client.items()}
    settings = Settings(kafka, given.registry, given.database or "", given.checkpoint, given.schema)
    _run(settings, given.batch, given.lake)


def _run(settings: Settings, batch: bool, lake: str | None) -> None:
    spark = SparkSession.builder.appName("pipeline").getOrCreate()
    if lake is not None:
        tables = Lake(spark, settings, lake)
        tables.create()
        tables.fill()
    elif batch:
        Pipeline(spark, settings).run_batch()
    else:
        Pipeline(spark, settings).start().wait_for_end()


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} isn't NAME=VALUE")
    return name, value


if __name__ == "__main__":
    main()
