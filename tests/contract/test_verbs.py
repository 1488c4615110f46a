"""What each verb of `Cluster` guarantees when it returns, on every back end."""

from __future__ import annotations

import signal
import socket
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ResourceType

import docker
from kafkalab import Cluster, LedgerProducer, wait_until
from kafkalab.cluster import Listener
from kafkalab.cluster.offsets import watermarks
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.cluster.wire import BrokerConnection, Metadata
from kafkalab.distribution import KAFKA_VERSION
from kafkalab.errors import (
    BackendUnavailable,
    BrokerFailed,
    BrokerNotRunning,
    ClusterNotRunning,
    FaultsUnsupported,
    PortInUse,
    UnknownBroker,
    UnknownListener,
    UnknownUser,
)
from kafkalab.widgets import Timeline
from support import create


def make_topic(cluster: Cluster, partitions: int = 6, replicas: int = 3, **config: str) -> str:
    topic = f"t-{uuid.uuid4().hex[:6]}"
    create(cluster, topic, partitions, replicas, **config)
    return topic


def in_sync(cluster: Cluster, topic: str) -> None:
    cluster.wait_for(lambda v: v.in_sync(topic), f"all replicas of {topic} in sync", 60)


def send(cluster: Cluster, topic: str, count: int, bootstrap: str | None = None, **settings: object) -> list[KafkaError | None]:
    outcomes: list[KafkaError | None] = []
    # A short socket timeout: a broker that hangs or is cut off still takes a client's questions.
    config = cluster.client_config(acks="all", enable_idempotence=True, socket_timeout_ms=3000, **settings)
    producer = Producer(config | ({"bootstrap.servers": bootstrap} if bootstrap else {}))
    for i in range(count):
        producer.produce(topic, f"v{i}", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(60) == 0
    return outcomes


def count_records(cluster: Cluster, topic: str) -> int:
    return sum(high - low for low, high in watermarks(cluster, topic).values())


def test_start_returns_a_cluster_that_agrees(shared: Cluster) -> None:
    answers = [BrokerConnection(shared.bootstrap(i)).metadata() for i in range(3)]
    assert all(set(a.brokers) == {0, 1, 2} for a in answers)
    view = shared.describe()
    assert view.controller in (0, 1, 2)
    assert [b.state for b in view.brokers.values()] == ["up"] * 3
    assert sum(b.controller for b in view.brokers.values()) == 1
    assert len(shared.bootstrap_servers.split(",")) == 3
    assert shared.start() is shared  # a running cluster is left as it is
    assert "Kafka Server started" in shared.logs(0)


def test_kill_and_restart_keep_address_and_data(shared: Cluster) -> None:
    topic = make_topic(shared)
    assert send(shared, topic, 50) == [None] * 50
    leader = shared.describe(groups=False).leaders(topic)[0]
    address = shared.bootstrap(leader)
    shared.kill(leader)
    assert shared.describe(groups=False).brokers[leader].state == "dead"
    shared.wait_for(lambda v: v.moved_from(topic, leader), "new leaders")
    view = shared.describe(groups=False)
    assert all(leader not in p.isr and leader in p.replicas for p in view.topics[topic])
    assert send(shared, topic, 50) == [None] * 50
    shared.restart(leader)
    assert shared.describe(groups=False).brokers[leader].state == "up"
    assert shared.bootstrap(leader) == address
    in_sync(shared, topic)
    assert shared.describe(groups=False).moved_from(topic, leader)  # leaders move back only when asked to
    assert count_records(shared, topic) == 100


def test_stop_broker_hands_leadership_over_first(shared: Cluster) -> None:
    topic = make_topic(shared)
    shared.stop_broker(1)
    view = shared.describe(groups=False)
    assert view.brokers[1].state == "stopped"
    assert view.moved_from(topic, 1)
    shared.restart(1)
    in_sync(shared, topic)


def test_the_timeline_counts_from_the_fault_that_is_under_way(shared: Cluster) -> None:
    """A stop takes a while, and leaders move meanwhile."""
    topic = make_topic(shared)
    producer = LedgerProducer(shared, topic, rate=50)
    timeline = Timeline(shared, producer)
    try:
        wait_until(lambda: timeline.gaps, 30, "acknowledgements")
        shared.stop_broker(2)
        changes = wait_until(lambda: [m for m in timeline._marks() if m.kind == "leader"], 20, "new leaders to be seen")
    finally:
        timeline.close()
        producer.stop()
    (stop,) = [fault for fault in shared.faults[-1:] if fault.verb == "stop"]
    assert [m.text for m in changes] == [f"new leaders after {m.at - stop.at:.1f} s" for m in changes]
    shared.restart(2)
    in_sync(shared, topic)


def test_restart_of_a_running_broker(shared: Cluster) -> None:
    topic = make_topic(shared)
    shared.restart(2)
    in_sync(shared, topic)
    assert shared.describe(groups=False).brokers[2].state == "up"


def test_pause_and_resume(shared: Cluster) -> None:
    topic = make_topic(shared)
    shared.pause(0)
    assert shared.describe(groups=False).brokers[0].state == "paused"
    shared.wait_for(lambda v: v.moved_from(topic, 0), "leaders away from the paused broker")
    assert send(shared, topic, 20) == [None] * 20
    shared.resume(0)
    assert shared.describe(groups=False).brokers[0].state == "up"
    in_sync(shared, topic)


def test_a_paused_broker_can_be_killed_and_restarted(shared: Cluster) -> None:
    shared.pause(2)
    shared.kill(2)
    assert shared.describe(groups=False).brokers[2].state == "dead"
    shared.restart(2)
    assert shared.describe(groups=False).brokers[2].state == "up"


@pytest.mark.parametrize("whom", ["the active controller", "another broker"])
def test_isolate_and_heal(shared: Cluster, whom: str) -> None:
    topic = make_topic(shared, min_insync_replicas="2")
    controller = shared.describe(groups=False).controller
    broker = controller if whom == "the active controller" else (controller + 1) % 3
    shared.isolate(broker)
    assert shared.describe(groups=False).brokers[broker].state == "isolated"
    shared.wait_for(lambda v: v.moved_from(topic, broker) and v.out_of_sync(topic, broker), "it to be fenced")
    alone = BrokerConnection(shared.bootstrap(broker)).metadata()  # clients still reach it, and it knows nothing new
    assert topic in alone.topics
    assert send(shared, topic, 20, shared.bootstrap((broker + 1) % 3)) == [None] * 20
    shared.heal(broker)
    assert shared.describe(groups=False).brokers[broker].state == "up"
    in_sync(shared, topic)
    assert count_records(shared, topic) == 20


@pytest.mark.parametrize("killed", [False, True])
def test_restart_connects_an_isolated_broker_again(shared: Cluster, killed: bool) -> None:
    topic = make_topic(shared)
    shared.isolate(1)
    shared.wait_for(lambda v: v.out_of_sync(topic, 1), "it to be fenced")
    if killed:
        shared.kill(1)
    shared.restart(1)
    assert shared.describe(groups=False).brokers[1].state == "up"
    in_sync(shared, topic)


def test_heal_does_not_wait_for_a_controller_that_is_still_cut_off(shared: Cluster) -> None:
    """The broker that was left alone has passed a question on to that controller, and asks no other before it gives up."""
    controller = shared.describe(groups=False).controller
    healed, left = (controller + 1) % 3, (controller + 2) % 3
    shared.isolate(healed)
    shared.isolate(controller)
    with pytest.raises(OSError):
        BrokerConnection(shared.bootstrap(left)).quorum()
    shared.heal(healed, timeout=20)
    shared.wait_for(lambda v: v.controller in (healed, left), "another controller to be seen", 20)
    shared.heal(controller)


def test_cut_off_until_it_looks_for_the_controller_anew(make_cluster) -> None:
    cluster = make_cluster(1, controllers=1).start()
    cluster.isolate(0)
    gave_up = "[RaftManager id=0] Disconnecting from node 100"
    wait_until(lambda: cluster.logs(0).count(gave_up) >= 3, 60, "broker 0 to give up its connections", interval=0.2)
    cluster.heal(0, timeout=20)
    assert cluster.describe(groups=False).brokers[0].state == "up"


def test_who_is_cut_off_does_not_speak_for_those_that_are_slow(make_cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster().start()
    topic = make_topic(cluster)
    cluster.isolate(1)
    cluster.wait_for(lambda v: v.out_of_sync(topic, 1), "it to be fenced")
    own, slow = BrokerConnection.metadata, [True] * 4
    cut_off = cluster._running()[0].control_address(1)

    def metadata(connection: BrokerConnection) -> Metadata:
        if connection.address != cut_off and slow:
            slow.pop()
            raise TimeoutError
        return own(connection)

    monkeypatch.setattr(BrokerConnection, "metadata", metadata)
    view = cluster.describe(groups=False)
    assert not slow
    assert view.out_of_sync(topic, 1)
    for broker in (0, 2):  # now nobody is left who knows better
        cluster.kill(broker)
    assert all(1 in p.isr for p in cluster.describe(groups=False).topics[topic])


def test_errors_name_what_is_wrong(shared: Cluster) -> None:
    with pytest.raises(UnknownBroker, match="there is no broker 7 in this cluster; it has 0, 1, 2"):
        shared.kill(7)
    with pytest.raises(UnknownBroker, match="there is no broker '0' in this cluster"):
        shared.kill("0")
    with pytest.raises(UnknownListener, match="there is no listener 'NOSUCH'; there are PLAINTEXT"):
        shared.bootstrap(0, "NOSUCH")
    with pytest.raises(UnknownUser, match="there is no user 'nobody': this cluster has none"):
        shared.client_config("nobody")
    with pytest.raises(ValueError, match=r"the setting num.partitions has no value"):
        shared.restart(0, settings={"num.partitions": None})
    with pytest.raises(BrokerNotRunning, match="cannot resume broker 0: it is up"):
        shared.resume(0)
    with pytest.raises(BrokerNotRunning, match="cannot heal broker 0: it is up"):
        shared.heal(0)
    shared.kill(0)
    for verb in (shared.kill, shared.stop_broker, shared.pause, shared.isolate):
        with pytest.raises(BrokerNotRunning, match="broker 0: it is dead"):
            verb(0)
    shared.restart(0)


def test_a_killed_node_may_be_gone_before_kill_has_done_all_it_does(shared: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster's map, say, looks at the same moment: whoever looks first takes leave of the process."""
    send_signal = psutil.Process.send_signal

    def seen_by_another(process: psutil.Process, sign: signal.Signals) -> None:
        send_signal(process, sign)
        if sign == signal.SIGKILL:
            wait_until(lambda: shared.states()[1] == "dead" and not psutil.pid_exists(process.pid), 10, "the end to be seen")

    monkeypatch.setattr(psutil.Process, "send_signal", seen_by_another)
    shared.kill(1)
    assert shared.states()[1] == "dead"
    shared.restart(1)


def test_kill_during_restart(shared: Cluster) -> None:
    topic = make_topic(shared)
    outcome: list[BaseException | None] = []

    def restart() -> None:
        try:
            shared.restart(1)
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    restarting = threading.Thread(target=restart)
    lives = shared.logs(1).count("Registered signal handlers")
    restarting.start()
    wait_until(
        lambda: shared.logs(1).count("Registered signal handlers") > lives, 60, "the broker to have begun anew", interval=0.005
    )
    shared.kill(1)
    restarting.join(60)
    assert isinstance(outcome[0], BrokerNotRunning), outcome
    assert "before it was ready" in str(outcome[0])
    shared.restart(1)
    in_sync(shared, topic)


def test_add_broker(make_cluster) -> None:
    cluster = make_cluster(1).start()
    assert cluster.add_broker() == 1
    view = cluster.describe(groups=False)
    assert view.brokers[1].state == "up" and not view.brokers[1].voter
    topic = make_topic(cluster, 4, 2)
    assert {b for p in cluster.describe(groups=False).topics[topic] for b in p.replicas} == {0, 1}
    cluster.stop_broker(1)
    cluster.restart(1)
    in_sync(cluster, topic)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe_shows_groups_and_goes_on_when_their_coordinator_dies(shared: Cluster, protocol: str) -> None:
    topic, group = make_topic(shared, 1), f"group-{protocol}"
    assert send(shared, topic, 20) == [None] * 20
    consumer = Consumer(
        shared.client_config(group_id=group, group_protocol=protocol, auto_offset_reset="earliest", enable_auto_commit=False)
    )
    try:
        consumer.subscribe([topic])
        assert len(consumer.consume(20, 60)) == 20
        consumer.commit(asynchronous=False)
        view = shared.wait_for(lambda v: v if v.groups[group].state == "Stable" else None, f"a stable {group}", groups=True)
        assert [m.partitions for m in view.groups[group].members] == [((topic, 0),)]
        assert view.groups[group].lag
        assert sum(view.groups[group].lag.values()) == 0
        assert send(shared, topic, 5) == [None] * 5
        shared.wait_for(lambda v: sum(v.groups[group].lag.values()) == 5, "a lag of 5", groups=True)

        admin = AdminClient(shared.client_config())
        coordinator = admin.describe_consumer_groups([group])[group].result().coordinator.id
        shared.kill(coordinator)
        shared.wait_for(
            lambda v: not v.silent and v.brokers[coordinator].state == "dead" and group in v.groups,
            "the group at its new coordinator",
            60,
            groups=True,
        )
    finally:
        consumer.close()
    shared.restart(coordinator)
    in_sync(shared, topic)


def test_dedicated_controllers_racks_and_settings(make_cluster) -> None:
    cluster = make_cluster(
        2, controllers=1, racks=["r1", "r2"], settings={"num.partitions": 5, "broker.session.timeout.ms": 3000}
    ).start()
    view = cluster.describe()
    assert view.controller == 100
    with pytest.raises(UnknownBroker, match="node 100 is a dedicated controller"):
        cluster.bootstrap(100)
    assert {i: (b.rack, b.voter) for i, b in view.brokers.items()} == {0: ("r1", False), 1: ("r2", False), 100: (None, True)}
    told = configs(cluster)
    assert told["num.partitions"].value == "5"
    assert told["broker.session.timeout.ms"].value == "3000"  # the learner's setting wins over the lesson's


def configs(cluster: Cluster, broker: int = 0) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    admin = AdminClient(cluster.client_config())
    return admin.describe_configs([resource])[resource].result()


def test_a_setting_may_hold_any_text(make_cluster) -> None:
    """One that is not ASCII, or has several lines, is not taken for other settings."""
    rack = "räck 🙂\nprocess.roles=nonsense\\"
    cluster = make_cluster(1, racks=[rack], settings={"auto.create.topics.enable": False}).start()
    told = configs(cluster)
    assert told["broker.rack"].value == rack
    assert told["process.roles"].value == "broker,controller"
    assert told["auto.create.topics.enable"].value == "false"


def test_restart_with_other_settings_names_the_reason_of_this_life(make_cluster) -> None:
    cluster = make_cluster(1).start()
    cluster.restart(0, settings={"num.partitions": 7, "auto.create.topics.enable": False})
    told = configs(cluster)
    assert (told["num.partitions"].value, told["auto.create.topics.enable"].value) == ("7", "false")
    with pytest.raises(BrokerFailed, match=r"log.retention.hours"):
        cluster.restart(0, settings={"log.retention.hours": "three"})
    with pytest.raises(BrokerFailed, match=r"num.io.threads") as caught:
        cluster.restart(0, settings={"log.retention.hours": 3, "num.io.threads": "none"})
    assert "log.retention.hours" not in str(caught.value)
    cluster.restart(0, settings={"num.io.threads": 2})
    assert configs(cluster)["log.retention.hours"].value == "3"


@pytest.mark.network
def test_a_rolling_upgrade() -> None:
    with Cluster(2, backend="local", version="4.2.1") as cluster:
        topic = make_topic(cluster, 2, 2)
        assert send(cluster, topic, 20) == [None] * 20
        for broker in (0, 1):
            assert "Kafka version: 4.2.1" in cluster.logs(broker) and f"Kafka version: {KAFKA_VERSION}" not in cluster.logs(
                broker
            )
            cluster.restart(broker, version=KAFKA_VERSION)
            in_sync(cluster, topic)
            assert f"Kafka version: {KAFKA_VERSION}" in cluster.logs(broker)
        assert send(cluster, topic, 20) == [None] * 20
        assert count_records(cluster, topic) == 40
        cluster.restart(1)
        assert cluster.logs(1).rstrip().count("Kafka version: 4.2.1") == 1  # it stays at the new version


@pytest.mark.docker
def test_another_version_on_docker_is_another_container_with_the_same_data() -> None:
    client = docker.from_env()
    client.images.get(f"apache/kafka:{KAFKA_VERSION}").tag("apache/kafka", "4.3.999")  # as good as another version
    try:
        with Cluster(1, backend="docker") as cluster:
            topic, address = make_topic(cluster, 1, 1), cluster.bootstrap(0)
            assert send(cluster, topic, 20) == [None] * 20
            cluster.isolate(0)
            cluster.restart(0, version="4.3.999")
            label = {"label": f"kafkalab.run={cluster.run.id}"}
            (container,) = client.containers.list(all=True, filters=label)
            assert container.image.tags and container.attrs["Config"]["Image"] == "apache/kafka:4.3.999"
            assert cluster.bootstrap(0) == address and count_records(cluster, topic) == 20
            volumes = {mount["Name"] for mount in container.attrs["Mounts"]}
            cluster.restart(0)
        assert not volumes & {volume.name for volume in client.volumes.list()}
    finally:
        client.images.remove("apache/kafka:4.3.999")
        client.close()


def test_a_version_that_cannot_be_had_leaves_the_broker_running(shared: Cluster) -> None:
    for version in ("4.2", "0.0.1"):
        with pytest.raises(ValueError, match="version of Kafka is text like"):
            shared.restart(0, version=version)
    with pytest.raises((ValueError, BackendUnavailable), match=r"9\.9\.9"):
        shared.restart(0, version="9.9.9")
    assert shared.states()[0] == "up"


def outcomes_of(*acts: Callable[[], object]) -> list[object]:
    """What each of some acts, carried out at the same time, returned or raised."""

    def outcome(act: Callable[[], object]) -> object:
        try:
            return act()
        except BaseException as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(outcome, acts))


def test_one_cluster_used_by_two_threads(make_cluster) -> None:
    cluster = make_cluster(2)
    assert outcomes_of(cluster.start, cluster.start) == [cluster, cluster]
    assert len(cluster.describe(groups=False).brokers) == 2  # not started twice
    assert sorted(outcomes_of(cluster.add_broker, cluster.add_broker)) == [2, 3]

    seen = len(cluster.faults)

    def stop_soon() -> None:
        wait_until(lambda: len(cluster.faults) > seen, 20, "the restart to begin")
        cluster.stop()

    restarted, stopped = outcomes_of(lambda: cluster.restart(1), stop_soon)
    assert isinstance(restarted, ClusterNotRunning) and stopped is None
    assert "was stopped while the restart of broker 1 was under way" in str(restarted)


def test_stop_waits_for_a_start_that_is_under_way(make_cluster) -> None:
    cluster = make_cluster(1)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(cluster.start)
        wait_until(lambda: cluster._backend is not None, 60, "the start to be under way", interval=0.001)
        with pytest.raises(ClusterNotRunning, match="is still starting, in another thread"):
            cluster.describe()
        cluster.stop()
        assert starting.result() is cluster
    assert not cluster.running


def test_clusters_side_by_side(make_cluster) -> None:
    clusters = [make_cluster(1), make_cluster(1)]
    starts = [threading.Thread(target=cluster.start) for cluster in clusters]
    for thread in starts:
        thread.start()
    for thread in starts:
        thread.join()
    one, two = clusters
    topic = make_topic(one, 1, 1)
    assert send(one, topic, 5) == [None] * 5
    assert topic not in two.describe().topics
    assert one.describe().cluster_id != two.describe().cluster_id
    one.stop()
    assert two.describe().brokers[0].state == "up"


PAIRS = [
    ("kill", "kill"),
    ("kill", "pause"),
    ("pause", "isolate"),
    ("isolate", "kill"),
    ("stop_broker", "pause"),
    ("kill", "isolate"),
]
MEND = {"kill": "restart", "stop_broker": "restart", "pause": "resume", "isolate": "heal"}


def test_faults_in_pairs(make_cluster) -> None:
    """Two of three brokers fail at once, each in its own way; with a controller of its own the cluster comes back whole."""
    cluster = make_cluster(3, controllers=1).start()
    topic = make_topic(cluster, 3)
    for sent, (first, second) in enumerate(PAIRS):
        getattr(cluster, first)(0)
        getattr(cluster, second)(1)
        alone = dict.fromkeys(range(3), (2,))
        what = f"broker 2 to be left alone after {first} and {second}"
        cluster.wait_for(lambda v, alone=alone: v.isr(topic) == alone, what, 60)
        # A client that meets both sides of a partition is told two stories by turns; this one starts from the right side.
        assert send(cluster, topic, 10, cluster.bootstrap(2)) == [None] * 10
        getattr(cluster, MEND[first])(0)
        getattr(cluster, MEND[second])(1)
        in_sync(cluster, topic)
        assert count_records(cluster, topic) == 10 * (sent + 1)


def test_a_stopped_cluster(make_cluster) -> None:
    cluster = make_cluster(1)
    with pytest.raises(ClusterNotRunning, match="call start"):
        cluster.describe()
    cluster.start()
    ended: list[str] = []
    cluster.on_stop(lambda: ended.append("first"))
    directory, address = cluster.run.directory, cluster.bootstrap(0)
    cluster.stop()
    assert ended == ["first"]
    assert not directory.exists()
    with pytest.raises(OSError):
        BrokerConnection(address).metadata()
    with pytest.raises(ClusterNotRunning, match="call start"):
        cluster.kill(0)
    cluster.stop()  # again: nothing happens
    assert "not running" in repr(cluster)
    cluster.start()  # and anew, with nothing in it
    assert not cluster.describe().topics


def test_fixed_ports(make_cluster) -> None:
    with reserve_port() as held:
        port = held.port
    assert make_cluster(1, ports=[port]).start().bootstrap_servers == f"127.0.0.1:{port}"
    with pytest.raises(PortInUse, match=str(port)):
        make_cluster(1, ports=[port]).start()


def neighbouring_ports() -> tuple[int, socket.socket]:
    """A free port, and a server that listens on the next one."""
    while True:
        with reserve_port() as free:
            pass
        try:
            return free.port, socket.create_server((HOST, free.port + 1))
        except OSError:
            continue


def test_usual_ports_where_they_are_free(make_cluster) -> None:
    """Of two neighbouring ports the first is free: broker 0 has it, and broker 1 another than the second, which is taken."""
    first, taken = neighbouring_ports()
    with taken:
        cluster = make_cluster(2, listeners=[Listener(), Listener("MORE", port=first)]).start()
        ports = [int(address.rpartition(":")[2]) for address in cluster.servers("MORE").split(",")]
        assert f"broker 1 has MORE at port {ports[1]}, for {first + 1} was taken" in repr(cluster)
    assert ports[0] == first and ports[1] != first + 1
    AdminClient({"bootstrap.servers": f"127.0.0.1:{ports[1]}"}).list_topics(timeout=10)


def test_a_setting_that_kafka_refuses(make_cluster) -> None:
    with pytest.raises(BrokerFailed, match=r"(?s)log.retention.hours.*Its last lines"):
        make_cluster(1, settings={"log.retention.hours": "three"}).start()


def test_copy_log_dir(shared: Cluster) -> None:
    topic = make_topic(shared, 2)
    send(shared, topic, 10)
    folder = shared.copy_log_dir(0)
    assert {p.name for p in folder.glob(f"{topic}-*")} == {f"{topic}-0", f"{topic}-1"}
    assert (folder / f"{topic}-0" / f"{0:020}.log").stat().st_size + (folder / f"{topic}-1" / f"{0:020}.log").stat().st_size > 0
    make_topic(shared)
    assert {p.name for p in shared.copy_log_dir(0, topic).iterdir()} == {f"{topic}-0", f"{topic}-1"}


def test_attached(shared: Cluster) -> None:
    topic = make_topic(shared)
    with Cluster.attached(shared.bootstrap_servers) as attached:
        assert attached.backend == "attached"
        assert send(attached, topic, 5) == [None] * 5
        view = attached.describe()
        assert set(view.brokers) == {0, 1, 2} and topic in view.topics
        for verb in (attached.kill, attached.pause, attached.restart, attached.isolate):
            with pytest.raises(FaultsUnsupported, match="not ours to break"):
                verb(0)
        with pytest.raises(FaultsUnsupported):
            attached.add_broker()
    assert shared.describe().brokers[0].state == "up"
