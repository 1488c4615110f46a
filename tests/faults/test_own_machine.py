"""A learner's own files, sessions and machine: each gets a sentence before it does harm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from kafkalab import Cluster, rebinding, wait_until
from kafkalab.lifeline import Run, claimed_runs, marked_processes
from support import PATIENCE, commands, on_a_port

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
    said = subprocess.run(command, cwd=crowded, capture_output=True, text=True, timeout=2 * PATIENCE)
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
    monkeypatch.setattr(rebinding, "notebook_shell", lambda: shell)
    monkeypatch.setattr(rebinding, "_started", [])
    monkeypatch.setattr(rebinding, "_watched", None)
    monkeypatch.chdir(crowded)
    before = set(claimed_runs())
    try:
        run(shell, CELL)
        first = shell.user_ns["cluster"].nodes.run
        run(shell, CELL)
        cluster: Cluster = shell.user_ns["cluster"]
        assert {one for one in set(claimed_runs()) - before if Run(one).is_mine()} == {cluster.nodes.run.id}
        assert marked_processes(first.id) == [] and "An earlier cluster still ran" in capsys.readouterr().out
        reads = 'reader = ConsoleConsumer(cluster, "t", group="g")'
        run(shell, TOPIC, reads, reads)
        assert sum("consumer_process" in " ".join(words) for words in commands(cluster.nodes.run.id)) == 1
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

# A new machine's folder has files that take the place of those in /etc. systemd would give root a name all the same.
HIDE = "for name in *; do mount --bind $name /etc/$name; done; cd /"

# How to make a machine, what it's told and what helps, and whether brokers start there: without a user's name, only Spark doesn't.
MACHINES = {
    "noexec": (
        "mount -t tmpfs -o noexec tmpfs $PWD; export TMPDIR=$PWD",
        "mounted with noexec",
        "TMPDIR=/another/folder",
        False,
    ),
    "hosts": (f"echo '10.0.0.1 other' > hosts; {HIDE}", "localhost has no address", "/etc/hosts", False),
    "passwd": (
        f"grep -v :0:0: /etc/passwd > passwd; echo 'passwd: files' > nsswitch.conf; {HIDE}",
        "user 0, who has no name",
        "echo 'learner:x:0:0:",
        True,
    ),
}


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root mounts file systems")
@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_that_lacks_something_is_told_before_anything_starts(machine: str, tmp_path: Path) -> None:
    prepare, found, mend, brokers_start = MACHINES[machine]
    script = f'set -e; {prepare}; exec "$0" -P -c "$1"'
    command = ["unshare", "-m", "sh", "-c", script, sys.executable, dedent(START)]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    if "unshare failed" in said.stderr or "permission denied" in said.stderr:
        pytest.skip("this machine lets nobody mount")
    lines = said.stdout.splitlines()
    assert len(lines) == 2 - brokers_start and all(found in line and mend in line for line in lines), said.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("jupyter_server_config.py", "c.ServerApp.jpserver_extensions = {'absent_extension': True}"),
        ("jupyter_server_config.json", '{"ServerApp": {"jpserver_extensions": {"absent_extension": true}}}'),
    ],
    ids=["python", "json"],
)
def test_jupyterlab_starts_without_an_extension_that_own_settings_name(name: str, text: str, tmp_path: Path) -> None:
    settings, log = tmp_path / "settings", tmp_path / "log"
    settings.mkdir()
    (settings / name).write_text(text)
    program = Path(sys.executable).with_name("kafkalab")
    command = [program, "lab", "--no-browser", "--no-standby", *on_a_port(), "--workspace", tmp_path / "work"]
    with log.open("w") as output:
        lab = subprocess.Popen(
            command, env=os.environ | {"JUPYTER_CONFIG_DIR": str(settings)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        address = wait_until(
            lambda: re.search(r"http://\S+", log.read_text()), PATIENCE, "the address", last_seen=log.read_text
        )
        token = address[0].rpartition("?token=")[2]
        request = urllib.request.Request(address[0], headers={"Authorization": f"token {token}"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=PATIENCE) as page:
            assert "<title>JupyterLab</title>" in page.read().decode()
    finally:
        lab.terminate()
        lab.wait(PATIENCE)
