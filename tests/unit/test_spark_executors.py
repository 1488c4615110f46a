"""The Java that executors of a `SparkCluster` are started with."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kafkalab.distribution.java import write_script
from kafkalab.spark.standalone import _JAVA


def test_what_becomes_of_the_arguments_for_java(tmp_path: Path) -> None:
    write_script(tmp_path / "java", _JAVA.format(java="printf '%s\\n' -archive", classes="'/a b/spark.jar'"))
    given = ["-cp", "/its own/*:/the user's.jar", "-Dname=$HOME *", "--add-modules=jdk.incubator.vector", "Main"]
    told = subprocess.run([tmp_path / "java", *given], capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = ["-archive", "-cp", "/a b/spark.jar:/its own/*:/the user's.jar", "-Dname=$HOME *", "Main"]
    assert told == wanted
