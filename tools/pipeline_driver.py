"""Run the truck pipeline's stream in a process of its own, which `pipeline_faults` can kill, or let kill itself at a moment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import psutil
import psycopg

from kafkalab import spark_session
from truck_pipeline import Pipeline, Settings
from truck_pipeline.tables import Batch, Tables

__all__ = ["MOMENTS", "kill_all", "moment_file", "start_driver"]

MOMENTS = ("before the tables' commit", "after the tables' commit")
"""When a driver can kill itself: with a batch's rows in its transaction, or with the batch stored and not committed in Spark."""


def start_driver(settings: Settings, environment: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the stream in a process with a JVM of its own."""
    driver = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)
    assert driver.stdin is not None
    driver.stdin.write(json.dumps(asdict(settings)).encode())
    driver.stdin.close()
    return driver


def kill_all(pid: int) -> None:
    """Kill a process and what it started, as a machine's end would."""
    process = psutil.Process(pid)
    for one in [*process.children(recursive=True), process]:
        with suppress(psutil.NoSuchProcess):  # a child may end by itself
            one.kill()


def moment_file(settings: Settings) -> Path:
    """Return the file that tells a driver when to kill itself."""
    return Path(f"{settings.checkpoint}-moment")


class _Mortal(Tables):
    """Tables that end the process at the moment that the file names."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.database, settings.schema, settings.wait)
        self._moment = moment_file(settings)

    def put(self, batch: Batch | None, *answers: Any) -> None:
        super().put(batch, *answers)
        self._die(MOMENTS[1])

    def _copy(self, cursor: psycopg.Cursor, *steps: Any) -> None:
        super()._copy(cursor, *steps)
        self._die(MOMENTS[0])

    def _die(self, moment: str) -> None:
        if self._moment.exists() and self._moment.read_text() == moment:
            kill_all(psutil.Process().pid)


def main() -> None:
    """Run the stream until it ends, with the settings on standard input."""
    settings = Settings(**json.load(sys.stdin))
    pipeline = Pipeline(spark_session(), settings)
    pipeline.tables = _Mortal(settings)
    pipeline.start().wait_for_end()


if __name__ == "__main__":
    main()
