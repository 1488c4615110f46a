"""``python -m pipeline``, or ``spark-submit`` with this file: run the pipeline until you end it.

``python -m pipeline`` starts Spark as the course's notebooks do, with all that it needs. ``--batch`` computes the tables once,
from the whole topic. With ``spark-submit``, Spark needs two packages beside itself, of its own version::

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0,org.apache.spark:spark-avro_2.13:4.0.0 …

``--lake`` adds what is new to Delta tables, and ends. Let a scheduler run it beside the stream, with the same checkpoint:
each has folders of its own in it. ``docs/pipeline.yaml`` does so every ten minutes. It needs a third package,
``io.delta:delta-spark_2.13:4.0.0``, and two settings::

    --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog

``--kafka`` gives settings of Kafka's own client, such as those of a login. Whoever may list processes can read them; a password
is better in a file of the JVM's, which ``-Djava.security.auth.login.config`` names.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence

from pyspark.sql import SparkSession

from kafkalab.errors import KafkaLabError
from kafkalab.spark.session import start_session
from pipeline.app import Pipeline
from pipeline.checkpoint import CheckpointRefused
from pipeline.lake import Lake, LakeGone
from pipeline.settings import Settings

_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # spark-submit sets it for the Python that it starts
_INTERRUPTED = 128 + signal.SIGINT  # as shells have it
_DATABASE = "PIPELINE_DATABASE"  # a URL holds a password, which others can read on a command line


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and run the pipeline."""
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
    add("--patience", default=Settings.patience, help="how late an event may come and still count (default: %(default)s)")
    add("--trigger", default=Settings.trigger, help="time between micro-batches, at least (default: %(default)s)")
    add("--most", default=Settings.most, type=int, help="how many records a micro-batch reads at most (default: %(default)s)")
    once = parser.add_mutually_exclusive_group()
    once.add_argument("--batch", action="store_true", help="work out the tables once, and end")
    once.add_argument("--lake", metavar="FOLDER", help="take what is new into Delta tables in a folder, and end")
    given = parser.parse_args(arguments)
    if given.database is None and given.lake is None:
        parser.error(f"give --database, or set {_DATABASE}")
    client = {"bootstrap.servers": given.bootstrap_servers, **dict(given.kafka)}
    kafka = {f"kafka.{name}": value for name, value in client.items()}
    settings = Settings(
        kafka, given.registry, given.database or "", given.checkpoint, given.schema,
        patience=given.patience, trigger=given.trigger, most=given.most,
    )  # fmt: skip
    try:
        _run(settings, given.batch, given.lake)
    except (ConnectionError, LookupError, CheckpointRefused, LakeGone, KafkaLabError) as problem:
        parser.exit(1, f"pipeline: {problem}\n")
    except KeyboardInterrupt:  # the way to end a stream in a terminal
        parser.exit(_INTERRUPTED, "pipeline: ended; with this checkpoint, the next start goes on from here\n")


def _run(settings: Settings, batch: bool, lake: str | None) -> None:
    spark = _session(delta=lake is not None)
    if lake is not None:
        tables = Lake(spark, settings, lake)
        tables.create()
        tables.fill()
    elif batch:
        Pipeline(spark, settings).run_batch()
    else:
        Pipeline(spark, settings).start().wait_for_end()


def _session(delta: bool) -> SparkSession:
    """Return the session that spark-submit prepared, or else start the course's own."""
    if _SUBMITTED in os.environ:
        return SparkSession.builder.appName("pipeline").getOrCreate()
    return start_session("pipeline", delta=delta)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} isn't NAME=VALUE")
    return name, value


if __name__ == "__main__":
    main()
