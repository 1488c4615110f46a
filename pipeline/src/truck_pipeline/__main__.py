"""Run the pipeline from the command line until you end it: ``python -m truck_pipeline``, or ``spark-submit`` with this file.

``python -m truck_pipeline`` starts Spark on this machine. Spark needs Java 17 or 21, and downloads its packages at the first
start. With ``spark-submit``, you name the packages. They have Spark's own version::

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0,org.apache.spark:spark-avro_2.13:4.2.0 …

``--batch`` computes the tables once, from the whole topic. ``--lake`` adds what is new to Delta tables, and ends. Let a
scheduler run it beside the stream, as ``deploy/pipeline.yaml`` does every ten minutes. Both may have the same checkpoint: each
has folders of its own in it. With ``spark-submit``, the lake needs a third package, ``io.delta:delta-spark_4.2_2.13:4.4.0``, and
two settings::

    --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog

``--kafka`` sets properties of Kafka's own client, such as those of a login. Whoever may list processes can read them. Keep a
password in a file, and name the file by the JVM's ``-Djava.security.auth.login.config``.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence

from truck_pipeline.app import Pipeline
from truck_pipeline.checkpoint import CheckpointRefused
from truck_pipeline.lake import Lake, LakeGone
from truck_pipeline.session import start_session
from truck_pipeline.settings import Settings

_INTERRUPTED = 128 + signal.SIGINT  # the exit status that shells use
_DATABASE = "PIPELINE_DATABASE"  # a URL holds a password, which others can read on a command line


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and run the pipeline."""
    parser = argparse.ArgumentParser(prog="truck-pipeline", description="From what trucks report to answers.")
    add = parser.add_argument
    add("--bootstrap-servers", required=True, help="Kafka, as host:port")
    add(
        "--kafka",
        action="append",
        default=[],
        type=_property,
        metavar="NAME=VALUE",
        help="a property of Kafka's client, such as security.protocol=SASL_SSL",
    )
    add("--registry", required=True, help="URL of the schema registry")
    add("--database", default=os.environ.get(_DATABASE), help=f"URL of PostgreSQL; without it, ${_DATABASE}")
    add("--checkpoint", required=True, help="a folder that outlives this process")
    add("--schema", default="live", help="the schema of the tables (default: live)")
    add("--patience", default=Settings.patience, help="how late an event may come and still count (default: %(default)s)")
    add("--trigger", default=Settings.trigger, help="least time between micro-batches (default: %(default)s)")
    add("--most", default=Settings.most, type=int, help="most records in a micro-batch (default: %(default)s)")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--batch", action="store_true", help="compute the tables once, and end")
    mode.add_argument("--lake", metavar="FOLDER", help="add what is new to Delta tables in a folder, and end")
    options = parser.parse_args(arguments)
    if options.database is None and options.lake is None:
        parser.error(f"give --database, or set {_DATABASE}")
    client = {"bootstrap.servers": options.bootstrap_servers, **dict(options.kafka)}
    settings = Settings(
        kafka={f"kafka.{name}": value for name, value in client.items()},
        registry=options.registry,
        database=options.database or "",
        checkpoint=options.checkpoint,
        schema=options.schema,
        patience=options.patience,
        trigger=options.trigger,
        most=options.most,
    )
    try:
        _run(settings, options.batch, options.lake)
    except (ConnectionError, LookupError, CheckpointRefused, LakeGone) as problem:
        parser.exit(1, f"{parser.prog}: {problem}\n")
    except KeyboardInterrupt:  # the way to end a stream in a terminal
        parser.exit(_INTERRUPTED, f"{parser.prog}: ended; with this checkpoint, the next start goes on from here\n")


def _run(settings: Settings, batch: bool, lake: str | None) -> None:
    spark = start_session(delta=lake is not None)
    if lake is not None:
        tables = Lake(spark, settings, lake)
        tables.create()
        tables.fill()
    elif batch:
        Pipeline(spark, settings).run_batch()
    else:
        Pipeline(spark, settings).start().wait_for_end()


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} isn't NAME=VALUE")
    return name, value


if __name__ == "__main__":
    main()
