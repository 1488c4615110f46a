"""Three learners at once on one machine, under JupyterHub: nobody reaches what is another's, and a chapter passes for all."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hub_support
from hub_support import Installed
from kafkalab_hub.client import Hub, HubError, Server
from kafkalab_hub.isolation import attempts, listeners
from kafkalab_hub.measure import measure, table
from kafkalab_hub.network import Network
from support import PATIENCE

MISSING = [program for program in ("ip", "npm", "useradd", "/usr/bin/python3") if shutil.which(program) is None]
pytestmark = [
    pytest.mark.network,
    pytest.mark.cluster,
    pytest.mark.at_length,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        os.geteuid() != 0 or bool(MISSING), reason=f"a hub needs root, and programs that aren't here: {MISSING}"
    ),
]

LEARNERS = ("kafkalab-ada", "kafkalab-bob", "kafkalab-eve")
CHAPTER = "notebooks/02_cluster_failover.ipynb"
CHAPTER_SECONDS = 900
LIMIT = 6 << 30
"""Bytes for all three learners together."""

FULL_LAB = """
from kafkalab import Cluster, ConnectCluster, MqttBroker, PostgreSQL, SchemaRegistry
cluster = Cluster(brokers=3).start()
registry = SchemaRegistry(cluster).start()
connect = ConnectCluster(cluster, workers=1).start()
mqtt = MqttBroker().start()
database = PostgreSQL().start()
from confluent_kafka.admin import AdminClient, NewTopic
admin = AdminClient({'bootstrap.servers': cluster.bootstrap_servers})
admin.create_topics([NewTopic('secrets', 1, 3)])['secrets'].result()
import os, tempfile
from kafkalab.paths import progress_dir, runs_dir
from kafkalab import progress
progress.record_lab("02_failsafe", True)
import json
print(json.dumps({
    "bootstrap": cluster.bootstrap_servers, "home": os.path.expanduser("~"), "runs": str(runs_dir()), "pid": os.getpid(),
    "progress": str(progress_dir()),
}))
"""

# Files in /dev/shm count for the learner, and belong to no process: the system can't choose the kernel for holding them.
REACH_THE_LIMIT = """
import json, tempfile
from kafkalab import Cluster
from kafkalab.widgets.events import events_between
cluster = Cluster(brokers=3).start()
before = after = cluster.describe()
with tempfile.TemporaryFile(dir="/dev/shm") as held:
    while not any(broker.state == "dead" for broker in after.brokers.values()):
        held.write(bytes(50 << 20))
        held.flush()
        after = cluster.describe()
print(json.dumps([event.says for event in events_between(before, after, 1.0)]))
"""

KILL_FROM_OUTSIDE = """
import os, psutil, signal
for id in after.brokers:
    if after.brokers[id].state == "dead":
        cluster.restart(id)
mine = (process for process in psutil.process_iter(["name", "uids"]) if process.info["uids"].real == os.getuid())
next(process for process in mine if process.info["name"] == "java").send_signal(signal.SIGKILL)
ends = cluster.wait_for(lambda seen: [broker.end for broker in seen.brokers.values() if broker.state == "dead"], "a dead broker")
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    folder = Path(tempfile.mkdtemp(prefix="kafkalab-hub-", dir="/var/tmp"))
    try:
        yield hub_support.install(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def learners() -> Iterator[tuple[str, ...]]:
    with hub_support.users(LEARNERS):
        yield LEARNERS


@pytest.fixture(scope="module")
def hub(installed: Installed, learners: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with hub_support.hub(installed, learners, tmp_path_factory.mktemp("hub")) as running:
        yield running


@pytest.fixture(scope="module")
def ada(hub: Hub) -> Server:
    return hub.start("kafkalab-ada")


@pytest.fixture(scope="module")
def bob(hub: Hub) -> Server:
    return hub.start("kafkalab-bob")


@pytest.fixture(scope="module")
def lab(ada: Server) -> Iterator[dict[str, str]]:
    """What Ada runs, while it runs."""
    with ada.kernel() as kernel:
        yield json.loads(kernel.run(FULL_LAB, 400).splitlines()[-1])


def test_nobody_reaches_a_listener_of_another(ada: Server, bob: Server, lab: dict[str, str]) -> None:
    # Those of the kernel that looks end with it.
    open_ports = sorted(set(listeners(ada)) & set(listeners(ada)))
    assert len(open_ports) >= 12, open_ports  # brokers and controllers, the relay, Connect, the registry, MQTT, PostgreSQL
    own = json.loads(
        ada.run(
            f"import json, socket\nprint(json.dumps([not socket.create_connection(tuple(address), 5).close() for address in {open_ports}]))",
            60,
        )
    )
    assert own == [True] * len(open_ports)  # so that a refusal says something
    address = next(host for host, _ in open_ports if host.startswith("10."))
    tried = attempts(bob, open_ports, address)
    assert len(tried) > len(open_ports)
    assert [attempt for attempt in tried if not attempt.refused] == []


def test_nobody_reads_topics_of_another(bob: Server, lab: dict[str, str]) -> None:
    asked = bob.run(
        "from confluent_kafka.admin import AdminClient\n"
        "from confluent_kafka import KafkaException\n"
        f"admin = AdminClient({{'bootstrap.servers': {lab['bootstrap']!r}}}, logger=__import__('logging').getLogger('no'))\n"
        "try:\n    print(sorted(admin.list_topics(timeout=5).topics))\n"
        "except KafkaException as error:\n    print(error.args[0].name())",
        60,
    )
    assert asked.strip() in ("_TRANSPORT", "_TIMED_OUT")


@pytest.mark.parametrize("what", ["home", "runs", "progress"])
def test_nobody_reads_files_of_another(bob: Server, lab: dict[str, str], what: str) -> None:
    with pytest.raises(HubError, match="PermissionError"):
        bob.run(f"import os; print(os.listdir({lab[what]!r}))", 60)


def test_nobody_reads_the_environment_of_another(bob: Server, lab: dict[str, str]) -> None:
    with pytest.raises(HubError, match=r"PermissionError|FileNotFoundError"):
        bob.run(f"print(open('/proc/{lab['pid']}/environ').read())", 60)


def test_progress_is_the_learners_own(ada: Server, bob: Server, lab: dict[str, str]) -> None:
    asked = "from kafkalab import progress; print('02_failsafe' in progress.load().labs)"
    assert (ada.run(asked, 60), bob.run(asked, 60)) == ("True\n", "False\n")


def test_the_shared_cache_cant_be_changed(bob: Server, installed: Installed) -> None:
    with pytest.raises(HubError, match="PermissionError"):
        bob.run(f"open('{installed.cache}/mine', 'w')", 60)


def test_kernels_listen_on_sockets_that_are_the_learners_alone(ada: Server, bob: Server) -> None:
    with ada.kernel() as kernel:
        folder = kernel.run("import os; print(os.environ['JUPYTER_RUNTIME_DIR'])", 60).strip()
        sockets = [file.name for file in Path(folder).iterdir() if kernel.id in file.name and file.is_socket()]
        assert len(sockets) == 5
        with pytest.raises(HubError, match="PermissionError"):
            bob.run(f"import socket; socket.socket(socket.AF_UNIX).connect({str(Path(folder, sockets[0]))!r})", 60)


def test_a_broker_that_the_limit_ends_is_told_from_a_killed_one(hub: Hub) -> None:
    with hub.start("kafkalab-eve").kernel() as kernel:
        says = json.loads(kernel.run(REACH_THE_LIMIT, PATIENCE).splitlines()[-1])
        assert [line for line in says if re.fullmatch(r"broker \d is dead: the memory limit ended it", line)]
        assert json.loads(kernel.run(KILL_FROM_OUTSIDE, PATIENCE).splitlines()[-1]) == [""]


def test_a_kernel_that_the_limit_ends_is_said(hub: Hub) -> None:
    with pytest.raises(HubError, match=r"kafkalab-eve's kernel ended while it ran this. Perhaps it reached the memory limit."):
        hub.start("kafkalab-eve").run("held = b'x' * (3 << 30)", PATIENCE)


def test_a_stopped_server_leaves_nothing(hub: Hub) -> None:
    server = hub.start("kafkalab-eve")
    server.run("import subprocess; subprocess.Popen(['sleep', '3600'], start_new_session=True)", 60)
    assert _processes("kafkalab-eve")
    hub.stop("kafkalab-eve")
    assert _processes("kafkalab-eve") == []
    assert "kafkalab-eve/" not in json.loads(Network().state.read_text())


def test_three_learners_at_once_pass_a_chapter(hub: Hub, measured: Callable[[str], None]) -> None:
    for learner in LEARNERS:
        if hub.ask(f"users/{learner}")["servers"]:
            hub.stop(learner)
    rows = measure(hub, LEARNERS, CHAPTER, CHAPTER_SECONDS)
    measured(f"three learners at once, {CHAPTER}:\n{table(rows)}")
    assert [row.failure for row in rows] == [""] * 3
    assert sum(row.peak for row in rows) <= LIMIT


def test_without_networks_of_their_own_learners_reach_each_other_and_connect_refuses(
    installed: Installed, learners: tuple[str, ...], tmp_path: Path
) -> None:
    """That's what the networks are for, and it shows that the attempts of the other tests can succeed."""
    with hub_support.hub(installed, learners, tmp_path, port=hub_support.PORT + 10, more="{'network': None}") as shared:
        ada, bob = (shared.start(name) for name in LEARNERS[:2])
        with ada.kernel() as kernel:
            kernel.run("from kafkalab import Cluster, ConnectCluster; cluster = Cluster(brokers=1).start()", 200)
            assert [attempt for attempt in attempts(bob, listeners(ada)) if not attempt.refused]
            with pytest.raises(HubError, match="UnsuitableMachine: other users"):
                kernel.run("ConnectCluster(cluster).start()", 60)


def _processes(user: str) -> list[str]:
    """What runs as a user. What has ended, and waits for the system to note it, doesn't."""
    shown = subprocess.run(["ps", "-o", "stat=,args=", "-u", user], capture_output=True, text=True).stdout.splitlines()
    return [line for line in shown if not line.startswith("Z")]
