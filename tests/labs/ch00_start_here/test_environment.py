"""A node started by hand: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from confluent_kafka.admin import AdminClient

from kafkalab import Cluster
from kafkalab.cluster.ports import Reservation, reserve_port
from kafkalab.distribution import java_command, java_version, put_tools_on_path
from kafkalab.lifeline import Run, reap
from support import Verdict

pytestmark = pytest.mark.cluster

LAB = "00_environment"
JAVA = java_version(java_command())


@dataclass
class Node:
    """A node started by hand, seen as a learner's check sees it."""

    seen: Cluster
    cluster_id: str


@pytest.fixture
def start_node() -> Iterator[Callable[[int], Node]]:
    """Starts nodes with the commands of the lab; what was started ends with the test."""
    put_tools_on_path()
    runs: list[Run] = []
    held: list[Reservation] = []

    def start(node_id: int) -> Node:
        run = Run.create("node")
        runs.append(run)
        ports = [reserve_port(), reserve_port()]
        held.extend(ports)
        port, controller_port = (reservation.port for reservation in ports)
        properties = run.directory / "server.properties"
        properties.write_text(
            f"node.id={node_id}\nprocess.roles=broker,controller\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
            f"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=127.0.0.1:{controller_port}\n"
            f"log.dirs={run.directory / 'data'}\noffsets.topic.replication.factor=1\nlog.cleaner.dedupe.buffer.size=4194304\n"
        )
        cluster_id = subprocess.run(
            ["kafka-storage.sh", "random-uuid"], capture_output=True, text=True, check=True
        ).stdout.strip()
        subprocess.run(
            ["kafka-storage.sh", "format", "--standalone", "--cluster-id", cluster_id, "--config", str(properties)],
            capture_output=True,
            check=True,
        )
        with open(run.directory / "broker.log", "w") as log:
            subprocess.Popen(
                ["kafka-server-start.sh", str(properties)], env=run.environment(), stdout=log, stderr=subprocess.STDOUT
            )
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 2})
        admin.describe_cluster(request_timeout=60).result()
        return Node(Cluster.attached(f"127.0.0.1:{port}").start(), cluster_id)

    yield start
    for run in runs:
        reap(run)
    for reservation in held:
        reservation.close()


def test_right_and_right_but_for_one_answer(start_node: Callable[[int], Node], verdict: Verdict) -> None:
    node = start_node(7)
    with node.seen:
        verdict.passes(LAB, node.seen, java=JAVA, cluster_id=node.cluster_id)
        verdict.passes(LAB, node.seen, java=str(JAVA), cluster_id=f"{node.cluster_id}\n")
        verdict.passes(LAB, node.seen, java=float(JAVA), cluster_id=node.cluster_id)
        verdict.says("another id", LAB, node.seen, java=JAVA, cluster_id="another-id")
        verdict.passes(LAB, node.seen, java=JAVA, cluster_id=[node.cluster_id])
        verdict.says(
            "a list of lines", LAB, node.seen, java=JAVA, cluster_id=["Formatting metadata directory", node.cluster_id]
        )
        verdict.says("number before the first dot", LAB, node.seen, java=1, cluster_id=node.cluster_id)


def test_untouched(verdict: Verdict) -> None:
    with reserve_port() as silent:
        passed, printed = verdict(LAB, Cluster.attached(f"127.0.0.1:{silent.port}"), java=None, cluster_id=None)
    assert not passed
    assert "0 of 4 requirements" in printed
    assert "No broker answered" in printed
    assert printed.count("Not looked at yet") == 2


def test_a_node_with_another_id(start_node: Callable[[int], Node], verdict: Verdict) -> None:
    node = start_node(1)
    with node.seen:
        verdict.says("The node's id is 1", LAB, node.seen, java=JAVA, cluster_id=node.cluster_id)


def test_somebody_elses_cluster(cluster: Cluster, verdict: Verdict) -> None:
    with Cluster.attached(cluster.bootstrap_servers) as attached:
        verdict.says("a cluster of 3 brokers", LAB, attached, java=JAVA, cluster_id=attached.describe().cluster_id)


def test_a_wrong_setting_is_told_by_the_last_lines_of_the_log(tmp_path: Path) -> None:
    """The lab neither waits a minute for a process that has ended nor prints what a client says about it."""
    root = Path(__file__).parents[3]
    notebook = nbformat.read(root / "solutions" / "00_start_here" / f"{LAB}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace('"broker,controller"', '"broker,kontroller"')
    path = tmp_path / f"{LAB}.ipynb"
    nbformat.write(notebook, path)
    command = [
        str(Path(sys.executable).with_name("kafkalab")),
        "run",
        "--backend",
        "local",
        "--out",
        str(tmp_path / "out"),
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [executed] = (tmp_path / "out").rglob(path.name)
    [told] = [c for c in nbformat.read(executed, as_version=4).cells if c.source.startswith("answer = None")]
    printed = "".join(output.get("text", "") for output in told.outputs)
    assert "kontroller" in printed, printed
    assert len(printed.splitlines()) <= 5
