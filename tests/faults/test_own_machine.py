"""A learner's own files, sessions and machine: each gets a sentence before it does harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from kafkalab import Cluster, rebinding
from kafkalab.lifeline import Run, claimed_runs, marked_processes

# Names of Python's own modules, in the folder where a notebook runs.
HIDING = ("queue", "random", "types", "typing", "socket")


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """A folder with files that have the names of Python's own modules."""
    for name in HIDING:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not Python\\'s own')")
    (tmp_path / "mine.py").write_text("word = 'mine'")
    return tmp_path


SESSIONS = """
    import sys
    from kafkalab.kernel import own_folder_after_pythons
    sys.path = own_folder_after_pythons(sys.path)
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import udf
    from kafkalab import spark_session
    from kafkalab.errors import SparkFailed
    from kafkalab.spark.session import kafka_source_options

    SparkSession.builder.master("local[1]").appName("own").config("spark.ui.enabled", "false").getOrCreate()
    try:
        spark_session()
    except SparkFailed as failed:
        print(failed)
    SparkSession.active().stop()

    spark = spark_session()
    settings = kafka_source_options("127.0.0.1:9") | {"subscribe": "any"}
    print(spark.read.format("kafka").options(**settings).load().columns[0])

    @udf("string")
    def word(number):
        import mine, queue
        return mine.word + str(queue.Queue)

    print(spark.range(1).select(word("id")).first()[0])
"""


def test_a_session_of_ones_own_is_named_and_python_functions_find_the_right_modules(crowded: Path) -> None:
    command = [sys.executable, "-P", "-c", dedent(SESSIONS)]
    said = subprocess.run(command, cwd=crowded, capture_output=True, text=True, timeout=250)
    first, *rest = said.stdout.splitlines() or [said.stderr]
    assert "there is a Spark session already ('own', local[1]) that can't read Kafka" in first and "stop()" in first
    assert rest == ["key", "mine<class 'queue.Queue'>"], said.stderr[-2000:]


CELL = """
from kafkalab import Cluster, ConsoleConsumer
cluster = Cluster(brokers=1, backend="local").start()
"""

TOPIC = """
from confluent_kafka.admin import AdminClient, NewTopic
admin = AdminClient(cluster.client_config())
admin.create_topics([NewTopic("t", 1, 1)])["t"].result()
"""


def test_a_first_cell_run_again_leaves_one_cluster(
    crowded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = InteractiveShell()
    monkeypatch.setattr(rebinding, "_shell", lambda: shell)
    monkeypatch.setattr(rebinding, "_started", [])
    monkeypatch.setattr(rebinding, "_watched", None)
    monkeypatch.chdir(crowded)
    before = set(claimed_runs())
    try:
        run(shell, CELL)
        first = shell.user_ns["cluster"].run
        run(shell, CELL)
        cluster: Cluster = shell.user_ns["cluster"]
        assert {one for one in set(claimed_runs()) - before if Run(one).is_mine()} == {cluster.run.id}
        assert marked_processes(first.id) == [] and "An earlier cluster still ran" in capsys.readouterr().out
        reads = 'reader = ConsoleConsumer(cluster, "t", group="g")'
        run(shell, TOPIC, reads, reads)
        assert sum("consumer_process" in " ".join(one.cmdline()) for one in marked_processes(cluster.run.id)) == 1
    finally:
        shell.user_ns["cluster"].stop()


def run(shell: Any, *cells: str) -> None:
    for cell in cells:
        assert shell.run_cell(cell, store_history=True).success


START = """
    from kafkalab import Cluster, spark_session
    from kafkalab.errors import KafkaLabError
    for start in (Cluster(brokers=1, backend="local").start, spark_session):
        try:
            start()
        except KafkaLabError as error:
            print(error)
"""

MACHINES = {
    "noexec": ("mount -t tmpfs -o noexec tmpfs {}; export TMPDIR={}", "mounted with noexec", "TMPDIR=/another/folder"),
    "hosts": ("echo '10.0.0.1 other' > {}/hosts; mount --bind {}/hosts /etc/hosts", "localhost has no address", "/etc/hosts"),
}


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root mounts file systems")
@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_that_lacks_something_is_told_before_anything_starts(machine: str, tmp_path: Path) -> None:
    prepare, found, mend = MACHINES[machine]
    script = f'set -e; {prepare.replace("{}", str(tmp_path))}; exec "$0" -P -c "$1"'
    command = ["unshare", "-m", "sh", "-c", script, sys.executable, dedent(START)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if "unshare failed" in said.stderr or "permission denied" in said.stderr:
        pytest.skip("this machine lets nobody mount")
    lines = said.stdout.splitlines()
    assert len(lines) == 2 and all(found in line and mend in line for line in lines), said.stderr
