"""The command ``truck-pipeline`` in a process of its own, and a Spark for it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pyspark

from kafkalab import wait_until
from kafkalab.distribution import java_command, spark_jars
from support import PATIENCE

__all__ = ["Process", "spark_environment"]


def spark_environment(home: Path, options: str = "") -> dict[str, str]:
    """A Spark with its connectors, as the image has it, and a Java without a module that Spark asks for in vain here; more options."""
    own = Path(pyspark.__path__[0])
    (home / "jars").mkdir()
    for jar in [*(own / "jars").glob("*.jar"), *spark_jars()]:
        (home / "jars" / jar.name).symlink_to(jar)
    (home / "bin").symlink_to(own / "bin")
    java = home / "java/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/sh\nfor one in "$@"; do shift; [ "$one" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$one"; done\n'
        f'exec {java_command()} "$@"\n'
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    submit = f"--master local[2] --driver-memory 1g --conf spark.ui.enabled=false {options} pyspark-shell"
    return os.environ | {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java.parents[1]),
        "PYSPARK_SUBMIT_ARGS": submit,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class Process:
    """The command, with its log in a file."""

    def __init__(self, environment: dict[str, str], folder: Path, *arguments: str) -> None:
        self._log = folder / f"log-{uuid.uuid4().hex}"
        command = [sys.executable, "-m", "truck_pipeline", *arguments]
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(command, env=environment, cwd=folder, stderr=log)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def lines(self, message: str) -> list[dict[str, Any]]:
        """What belongs to each line with this message."""
        entries = [json.loads(line) for line in self.log.splitlines() if line.startswith('{"ts"')]
        return [entry["context"] for entry in entries if entry["msg"].startswith(message)]

    def wait_for_start(self, of: str = "the stream has started") -> dict[str, Any]:
        self.wait_for(lambda: bool(self.lines(of)), of)
        return self.lines(of)[0]

    def wait_for_batches(self, events: int) -> list[dict[str, Any]]:
        """Wait until batches with so many events are stored."""
        self.wait_for(lambda: sum(batch["events"] for batch in self.lines("stored a batch")) == events, f"{events} events")
        return self.lines("stored a batch")

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition, as long as the command runs."""

        def met() -> bool:
            assert self.process.poll() is None, self.log[-5000:]
            return condition()

        wait_until(met, PATIENCE, what, last_seen=lambda: self.log[-5000:])

    def end(self, *signals: signal.Signals) -> int:
        """Send signals, and wait for the end."""
        for one in signals:
            self.process.send_signal(one)
        return self.process.wait(2 * PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()
