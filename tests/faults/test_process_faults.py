"""Nothing that kafkalab starts outlives its owner, and nothing that interrupts it leaves it broken."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from kafkalab import Cluster, SparkCluster, wait_until
from kafkalab.cluster import standby
from kafkalab.cluster.backends.local import LocalBackend
from kafkalab.cluster.backends.relay_process import RelayProcess
from kafkalab.cluster.ports import reserve_port
from kafkalab.cluster.spec import ClusterSpec
from kafkalab.errors import BrokerFailed, KafkaLabError, PortInUse, SparkFailed, WaitTimeout
from kafkalab.lifeline import Run, abandoned_runs, claimed_runs, marked_processes, reap
from kafkalab.paths import runs_dir
from kafkalab.services.java_process import JavaProcess
from support import BACKEND, PATIENCE, commands, lives

OWNER = """
    import sys
    from confluent_kafka.admin import AdminClient, NewTopic
    from kafkalab import Cluster, ConsoleConsumer
    cluster = Cluster({brokers}, backend={backend!r}).start()
    if {workers}:
        admin = AdminClient(cluster.client_config())
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result()
        consumer = ConsoleConsumer(cluster, "t", group="g")
    print(cluster.nodes.run.id, cluster.clients.bootstrap(0), flush=True)
    sys.stdin.read()
"""


SERVICES = """
    import sys
    from pathlib import Path
    from confluent_kafka.admin import AdminClient, NewTopic
    from kafkalab import Cluster, ConnectCluster, MqttBroker, PostgreSQL, SchemaRegistry, SparkCluster, StreamsApp
    from kafkalab.lifeline import Run, claimed_runs
    cluster = Cluster(1, backend="local").start()
    admin = AdminClient(cluster.client_config())
    for created in admin.create_topics([NewTopic("t", 1, 1), NewTopic("u", 1, 1)]).values():
        created.result()
    app = StreamsApp(cluster, Path(sys.argv[1])).start()
    others = [ConnectCluster(cluster), SchemaRegistry(cluster), MqttBroker(), PostgreSQL(), SparkCluster(1)]
    for service in others:
        service.start()
    print(*(run for run in claimed_runs() if Run(run).is_mine()), flush=True)
    sys.stdin.read()
"""


def run_owner(code: str, tmp_path: Path, *arguments: str, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("w"),
        text=True,
        env={**os.environ, **environment},
    )


def test_nothing_is_left_when_the_owner_is_killed(tmp_path: Path) -> None:
    owner = run_owner(OWNER.format(brokers=1, backend="local", workers=True), tmp_path)
    line = owner.stdout.readline().split()
    assert len(line) == 2, (tmp_path / "stderr").read_text()
    run, address = line
    assert len(marked_processes(run)) >= 3  # the broker, the relay, the consumer
    owner.kill()

    def files() -> list[Path]:
        return [path for path in (runs_dir() / run, *runs_dir().glob(f"owners/{owner.pid}-*")) if path.exists()]

    wait_until(
        lambda: not marked_processes(run) and not files(),
        PATIENCE,
        "all of a killed owner's processes and files to be gone",
        last_seen=lambda: (commands(run), files()),
    )
    owner.wait()
    host, port = address.split(":")
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), 1)


def test_no_service_outlives_its_owner(tmp_path: Path) -> None:
    topology = tmp_path / "copied.py"
    topology.write_text("def topology(builder):\n    builder.stream('t').to('u')\n")
    owner = run_owner(SERVICES, tmp_path, str(topology))
    runs = owner.stdout.readline().split()
    assert len(runs) == 5, (tmp_path / "stderr").read_text()  # the application and the registry belong to the cluster
    # The processes of PostgreSQL name neither their folder nor, to other users, their run.
    family = {*psutil.Process(owner.pid).children(recursive=True), *(p for run in runs for p in marked_processes(run))}
    assert len(family) >= 12
    owner.kill()
    owner.wait()

    def left() -> list[object]:
        return [*filter(lives, family), *(run for run in runs if (runs_dir() / run).exists())]

    wait_until(lambda: not left(), PATIENCE, "all of a killed owner's services to be gone", last_seen=left)


@pytest.mark.skipif(BACKEND != "local", reason="a container's processes are not ours to kill")
def test_a_wait_names_the_signal_that_ended_a_broker(cluster: Cluster) -> None:
    broker = next(p for p in marked_processes(cluster.nodes.run.id) if "node-2/server.properties" in " ".join(p.cmdline()))
    broker.kill()
    cluster.wait_for(lambda view: view.brokers[2].state == "dead", "broker 2 to be gone")
    said = r"broker 2 was ended by SIGKILL \(9\): killed from outside; out of memory\?"
    with pytest.raises(WaitTimeout, match=said):
        cluster.wait_for(lambda view: len(view.brokers_up) == 3, "three brokers", 1)
    cluster.restart(2)


def test_a_relay_that_was_killed_is_named_before_brokers_wait_for_each_other() -> None:
    run = Run.create("relay")
    backend = LocalBackend(ClusterSpec(), run)
    backend._relay = RelayProcess.start(run)
    backend.write_state()
    heir = LocalBackend(ClusterSpec(), run)
    heir.read_state()
    heir._running_relay()
    backend._relay._child.kill()
    backend._relay._child.wait()
    with pytest.raises(BrokerFailed, match=r"the relay between brokers was ended by SIGKILL \(9\)"):
        backend.check_alive(0)
    with pytest.raises(BrokerFailed, match="the relay between brokers was ended"):
        backend._update_isolated()
    with pytest.raises(BrokerFailed, match="the relay between brokers ended without a word: killed from outside"):
        heir.check_alive(0)
    reap(run)


def test_what_killed_a_service_is_named(tmp_path: Path) -> None:
    run = Run.create("killed")
    process = JavaProcess(run, "service", "the service", KafkaLabError)
    process.run_java("16m", str(tmp_path), "Nowhere", [])
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not process.alive, PATIENCE, "it to be gone")
    assert process.obituary().startswith("the service was ended by SIGKILL (9): killed from outside; out of memory?")
    reap(run)


def test_a_spark_master_that_was_killed_is_not_waited_for() -> None:
    spark = SparkCluster(1)
    spark._run = spark._make_run()
    spark._master = spark._process(spark._run, "master")
    spark._master.launch([sys.executable, "-c", "import signal; signal.pause()"])
    spark._master.kill()
    with pytest.raises(SparkFailed, match=r"Spark's master was ended by SIGKILL \(9\): killed from outside"):
        spark._wait(lambda: False, "Spark's master to answer")
    spark.stop()


@pytest.mark.docker
def test_nothing_is_left_when_the_owner_is_killed_on_docker(tmp_path: Path) -> None:
    from docker.client import from_env

    owner = run_owner(OWNER.format(brokers=1, backend="docker", workers=False), tmp_path)
    line = owner.stdout.readline().split()
    assert len(line) == 2, (tmp_path / "stderr").read_text()
    label = {"label": f"kafkalab.run={line[0]}"}
    client = from_env()
    assert client.containers.list(filters=label)
    owner.kill()
    wait_until(
        lambda: (
            not client.containers.list(all=True, filters=label, ignore_removed=True) and not client.networks.list(filters=label)
        ),
        PATIENCE,
        "all of a killed owner's containers and networks to be gone",
    )
    owner.wait()


def test_a_run_of_a_process_that_belongs_to_a_run_is_reaped_too(tmp_path: Path) -> None:
    outer = Run.create("outer")
    script = "from kafkalab.lifeline import Run; print(Run.create('inner').id, flush=True); input()"
    with (
        (tmp_path / "stderr").open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", script],
            env=outer.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        inner = process.stdout.readline().strip()
        assert (runs_dir() / inner).is_dir(), (tmp_path / "stderr").read_text()
        reap(outer)
    wait_until(lambda: inner not in claimed_runs() and not (runs_dir() / inner).exists(), PATIENCE, "the inner run to be gone")


INTERRUPTED = """
    import os, threading
    from kafkalab import Cluster
    cluster = Cluster(2, backend="local")
    timer = threading.Timer({delay}, os.kill, (os.getpid(), 2))
    timer.start()
    try:
        cluster.start()
        print("started", flush=True)
        timer.join()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    timer.cancel()
    cluster.start()
    print("running", sorted(cluster.describe().brokers), flush=True)
    cluster.stop()
"""


MOMENTS = [0.1, 1.4]  # seconds after the start
MORE_MOMENTS = [0.02, 0.25, 0.5, 0.9, 2.0]


@pytest.mark.parametrize("delay", [*MOMENTS, *[pytest.param(delay, marks=pytest.mark.at_length) for delay in MORE_MOMENTS]])
def test_start_works_again_after_an_interrupt_at_any_moment(tmp_path: Path, delay: float) -> None:
    done = run_owner(INTERRUPTED.format(delay=delay), tmp_path)
    out, _ = done.communicate(timeout=PATIENCE)
    assert "running [0, 1]" in out, out + (tmp_path / "stderr").read_text()
    wait_until(lambda: not list(runs_dir().glob(f"owners/{done.pid}-*")), PATIENCE, "the owner and its runs to be gone")


def test_a_port_taken_between_choosing_and_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    squatters: list[socket.socket] = []
    spawn = LocalBackend._spawn

    def squat_then_spawn(backend: LocalBackend, process: Any) -> None:
        if not squatters:
            # As only a listener that shares addresses can: the reservation keeps all others off.
            squatter = socket.socket()
            squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            squatter.bind(("127.0.0.1", process.bound["PLAINTEXT"]))
            squatter.listen()
            squatters.append(squatter)
        spawn(backend, process)

    monkeypatch.setattr(LocalBackend, "_spawn", squat_then_spawn)
    with Cluster(1, backend="local") as cluster:
        taken = squatters[0].getsockname()[1]
        assert cluster.bootstrap_servers != f"127.0.0.1:{taken}"
        assert cluster.describe().brokers[0].state == "up"
    squatters.pop().close()

    with reserve_port() as held:
        port = held.port
    with pytest.raises(PortInUse, match=f"port {port}, which was asked for broker 0"):
        Cluster(1, backend="local", ports=[port]).start()
    squatters.pop().close()


# A standby of one broker: enough for one that nobody wants.
SMALL_STANDBY = """
from kafkalab.cluster import standby
from kafkalab.cluster.spec import ClusterSpec
standby.ClusterSpec = lambda: ClusterSpec(brokers=1)
standby.main()
"""


def test_a_standby_cluster_is_taken_once_and_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # no other standby is meant
    start = [sys.executable, "-m", "kafkalab.cluster.standby"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    waiting = subprocess.Popen(start, stdin=subprocess.PIPE, env=environment)
    wait_until(lambda: list(runs_dir().glob("standby-*/offered-by-*")), PATIENCE, "a standby cluster to be offered")
    with Cluster(backend="local") as first:
        assert first.nodes.run.id.startswith("standby-")
        waiting.stdin.close()  # its parent is gone; what was taken lives on
        waiting.wait(PATIENCE)
        assert first.describe().brokers.keys() == {0, 1, 2}
        first.kill(0)
        first.restart(0)
        assert standby.take(ClusterSpec(), "local") is None  # the next one starts brokers of its own

    unwanted = subprocess.Popen([sys.executable, "-c", SMALL_STANDBY], stdin=subprocess.PIPE, env=environment)
    offers = wait_until(lambda: list(runs_dir().glob("standby-*/offered-by-*")), PATIENCE, "another to be offered")
    unwanted.stdin.close()
    unwanted.wait(PATIENCE)
    assert not marked_processes(offers[0].parent.name)
    assert not offers[0].parent.exists()


def test_a_run_whose_owner_crashed_before_its_reaper_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    owner = run_owner(OWNER.format(brokers=1, backend="local", workers=False), tmp_path, TMPDIR=str(tmp_path))
    run, _ = owner.stdout.readline().split()
    # A notebook's interrupt goes to the kernel's whole process group; the broker is not in it.
    groups = {os.getpgid(p.pid) for p in marked_processes(run)}
    assert groups and os.getpgid(owner.pid) not in groups
    reapers = [
        p
        for p in psutil.process_iter(["cmdline"])
        if {str(owner.pid), "kafkalab.lifeline.reaper"} <= {*(p.info["cmdline"] or ())}
    ]
    assert len(reapers) == 1
    reapers[0].kill()  # ours: started by the owner above
    owner.kill()
    owner.wait()
    found = [r for r in abandoned_runs() if r.id == run]
    assert len(found) == 1 and marked_processes(run)
    reap(found[0])
    assert not marked_processes(run) and not found[0].directory.exists()


FORKING = """
    import os, sys
    from kafkalab import Cluster
    with Cluster(1, backend="local") as cluster:
        child = os.fork()
        if child == 0:
            sys.exit(0)  # leaves the block, and then Python, as a worker of multiprocessing does
        os.waitpid(child, 0)
        print(cluster.describe().brokers[0].state, flush=True)
"""


def test_a_forked_child_leaves_its_parents_cluster_alone(tmp_path: Path) -> None:
    parent = run_owner(FORKING, tmp_path)
    out, _ = parent.communicate(timeout=PATIENCE)
    assert out == "up\n", (tmp_path / "stderr").read_text()


NATIVE = """
    import os
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic
    from kafkalab import Cluster
    cluster = Cluster(1, backend="local").start()
    codecs = ("lz4", "snappy", "zstd", "gzip")
    admin = AdminClient(cluster.client_config())
    for made in admin.create_topics([NewTopic(codec, 1, 1, config={"compression.type": codec}) for codec in codecs]).values():
        made.result()
    producer = Producer(cluster.client_config())
    for codec in codecs:
        producer.produce(codec, b"x" * 1000)  # the broker compresses it
    assert producer.flush(30) == 0
    print(sorted(path.name for path in (cluster.nodes.run.directory / "node-0/tmp").iterdir()), flush=True)
    cluster.stop()
"""


def test_brokers_leave_nothing_in_the_folder_for_temporary_data(tmp_path: Path) -> None:
    temporary = tmp_path / "tëmporary"  # a path that is not ASCII has to do, also in the locale "C"
    temporary.mkdir()
    owner = run_owner(NATIVE, tmp_path, TMPDIR=str(temporary), LC_ALL="C")
    out, _ = owner.communicate(timeout=PATIENCE)
    assert "snappy" in out, (tmp_path / "stderr").read_text()
    assert [path.name for path in temporary.iterdir()] == [f"kafkalab-{os.getuid()}"]
