"""Run the pipeline from the command line: ``truck-pipeline``, ``python -m truck_pipeline``, or ``spark-submit`` with this file.

``truck-pipeline run --settings pipeline.toml`` starts Spark on this machine, and the stream. Spark needs Java 17 or 21, and
downloads its packages at the first start. With ``spark-submit``, you name the packages. They have Spark's own version::

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0,org.apache.spark:spark-avro_2.13:4.2.0 …

The lake's commands need a third package, ``io.delta:delta-spark_4.2_2.13:4.4.0``, and two settings::

    --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog

The exit status is 0 at a good end, also by a signal that let the stream end its batch; 1 if something failed; 2 if the command
line or the settings can't be used; and 128 more than the signal's number if one ended it at once.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from truck_pipeline.alarms import TooFewSlots
from truck_pipeline.checkpoint import CheckpointRefused
from truck_pipeline.commands import COMMANDS
from truck_pipeline.configuration import SettingsRefused, read
from truck_pipeline.ending import end_at_once
from truck_pipeline.lake import LakeGone
from truck_pipeline.layout import TablesDiffer
from truck_pipeline.logs import logged_as_json
from truck_pipeline.tables import TablesTaken

_LOG = logging.getLogger("truck_pipeline")
_REFUSED = (CheckpointRefused, LakeGone, TablesDiffer, TablesTaken, TooFewSlots)
_EXPECTED = (ConnectionError, LookupError, *_REFUSED)  # their messages say what to do


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and the settings, and run a command.

    Raises
    ------
    SystemExit
        Unless all went well.
    """
    parser = argparse.ArgumentParser(prog="truck-pipeline", description="From what trucks report to answers.")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=inspect.getdoc(command.function))
        one.add_argument("--settings", type=Path, default=Path("pipeline.toml"), help="a file (default: %(default)s)")
        for option, how in command.options.items():
            one.add_argument(option, **how)
    options = vars(parser.parse_args(arguments))
    name, settings = options.pop("command"), options.pop("settings")
    command = COMMANDS[name]
    try:
        configuration, secrets = read(settings, os.environ, command.needs)
    except SettingsRefused as refused:
        parser.exit(2, "".join(f"{parser.prog}: {line}\n" for line in str(refused).splitlines()))
    with logged_as_json(secrets), end_at_once():
        try:
            command.function(configuration, **options)
        except _EXPECTED as problem:
            _LOG.error("%s", problem)
            sys.exit(1)
        except Exception:
            _LOG.exception("%s has failed", name)
            sys.exit(1)


if __name__ == "__main__":
    main()
