"""What each verb of `Cluster` guarantees when it returns, on every back end."""

from __future__ import annotations

import signal
import threading
import uuid

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, wait_until
from kafkalab.checks.sight import watermarks
from kafkalab.cluster import Listener
from kafkalab.cluster.ports import Reservation, reserve_port
from kafkalab.cluster.wire import BrokerConnection, Metadata
from kafkalab.errors import BrokerFailed, BrokerNotRunning, ClusterNotRunning, FaultsUnsupported, PortInUse, UnknownBroker

FULL = 3


def make_topic(cluster: Cluster, partitions: int = 6, replicas: int = 3, **config: str) -> str:
    topic = f"t-{uuid.uuid4().hex[:6]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic(topic, partitions, replicas, config=settings)])[topic].result()
    in_sync(cluster, topic, replicas)
    return topic


def in_sync(cluster: Cluster, topic: str, replicas: int = FULL) -> None:
    cluster.wait_for(lambda v: all(len(p.isr) == replicas for p in v.topics[topic]), f"all replicas of {topic} in sync", 60)


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


def led_by(broker: int, topic: str):
    return lambda v: any(leader == broker for leader in v.leaders(topic).values())


def moved_from(broker: int, topic: str):
    return lambda v: all(leader not in (broker, None) for leader in v.leaders(topic).values())


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
    shared.wait_for(moved_from(leader, topic), "new leaders")
    view = shared.describe(groups=False)
    assert all(leader not in p.isr and leader in p.replicas for p in view.topics[topic])
    assert send(shared, topic, 50) == [None] * 50
    shared.restart(leader)
    assert shared.describe(groups=False).brokers[leader].state == "up"
    assert shared.bootstrap(leader) == address
    in_sync(shared, topic)
    assert not led_by(leader, topic)(shared.describe(groups=False))  # leaders move back only when asked to
    assert count_records(shared, topic) == 100


def test_stop_broker_hands_leadership_over_first(shared: Cluster) -> None:
    topic = make_topic(shared)
    shared.stop_broker(1)
    view = shared.describe(groups=False)
    assert view.brokers[1].state == "stopped"
    assert moved_from(1, topic)(view)
    shared.restart(1)
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
    shared.wait_for(moved_from(0, topic), "leaders away from the paused broker")
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
    shared.wait_for(lambda v: moved_from(broker, topic)(v) and all(broker not in p.isr for p in v.topics[topic]), "it to be fenced")
    alone = BrokerConnection(shared.bootstrap(broker)).metadata()  # clients still reach it, and it knows nothing new
    assert topic in alone.topics
    assert send(shared, topic, 20, shared.bootstrap((broker + 1) % 3)) == [None] * 20
    shared.heal(broker)
    assert shared.describe(groups=False).brokers[broker].state == "up"
    in_sync(shared, topic)
    assert count_records(shared, topic) == 20


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
    cluster.wait_for(lambda v: all(1 not in p.isr for p in v.topics[topic]), "it to be fenced")
    own, slow = BrokerConnection.metadata, [True] * 4
    cut_off = cluster._running().control_address(1)

    def metadata(connection: BrokerConnection) -> Metadata:
        if connection.address != cut_off and slow:
            slow.pop()
            raise TimeoutError
        return own(connection)

    monkeypatch.setattr(BrokerConnection, "metadata", metadata)
    view = cluster.describe(groups=False)
    assert not slow
    assert all(1 not in p.isr for p in view.topics[topic])
    for broker in (0, 2):  # now nobody is left who knows better
        cluster.kill(broker)
    assert all(1 in p.isr for p in cluster.describe(groups=False).topics[topic])


def test_errors_name_what_is_wrong(shared: Cluster) -> None:
    with pytest.raises(UnknownBroker, match="there is no broker 7 in this cluster; it has 0, 1, 2"):
        shared.kill(7)
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
        except BaseException as error:  # noqa: BLE001 - the test looks at whatever it was
            outcome.append(error)

    restarting = threading.Thread(target=restart)
    seen = len(shared.faults)
    restarting.start()
    wait_until(lambda: len(shared.faults) > seen, 60, "the restart to have begun anew", interval=0.005)
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
    in_sync(cluster, topic, 2)


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
    cluster = make_cluster(2, controllers=1, racks=["r1", "r2"], settings={"num.partitions": 5, "broker.session.timeout.ms": 3000}).start()
    view = cluster.describe()
    assert view.controller == 100
    assert {i: (b.rack, b.voter) for i, b in view.brokers.items()} == {0: ("r1", False), 1: ("r2", False), 100: (None, True)}
    from confluent_kafka.admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.BROKER, "0")
    admin = AdminClient(cluster.client_config())
    told = admin.describe_configs([resource])[resource].result()
    assert told["num.partitions"].value == "5"
    assert told["broker.session.timeout.ms"].value == "3000"  # the learner's setting wins over the lesson's


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


PAIRS = [("kill", "kill"), ("kill", "pause"), ("pause", "isolate"), ("isolate", "kill"), ("stop_broker", "pause"), ("kill", "isolate")]
MEND = {"kill": "restart", "stop_broker": "restart", "pause": "resume", "isolate": "heal"}


def test_faults_in_pairs(make_cluster) -> None:
    """Two of three brokers fail at once, each in its own way; with a controller of its own the cluster comes back whole."""
    cluster = make_cluster(3, controllers=1).start()
    topic = make_topic(cluster, 3)
    for sent, (first, second) in enumerate(PAIRS):
        getattr(cluster, first)(0)
        getattr(cluster, second)(1)
        alone = dict.fromkeys(range(3), (2,))
        cluster.wait_for(lambda v: v.isr(topic) == alone, f"broker 2 to be left alone after {first} and {second}", 60)
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


def neighbouring_ports() -> tuple[int, Reservation]:
    """A free port, and the next one, reserved."""
    while True:
        with reserve_port() as free:
            pass
        try:
            return free.port, reserve_port(free.port + 1)
        except PortInUse:
            continue


def test_usual_ports_where_they_are_free(make_cluster) -> None:
    """Of two neighbouring ports the first is free: broker 0 has it, and broker 1 another than the second, which is taken."""
    first, taken = neighbouring_ports()
    with taken:
        cluster = make_cluster(2, listeners=[Listener(), Listener("MORE", port=first)]).start()
        ports = [int(address.rpartition(":")[2]) for address in cluster.servers("MORE").split(",")]
    assert ports[0] == first and ports[1] != first + 1
    AdminClient({"bootstrap.servers": f"127.0.0.1:{ports[1]}"}).list_topics(timeout=10)


def test_a_setting_that_kafka_refuses(make_cluster) -> None:
    with pytest.raises(BrokerFailed, match="(?s)log.retention.hours.*Its last lines"):
        make_cluster(1, settings={"log.retention.hours": "three"}).start()


def test_copy_log_dir(shared: Cluster) -> None:
    topic = make_topic(shared, 2)
    send(shared, topic, 10)
    folder = shared.copy_log_dir(0)
    assert {p.name for p in folder.glob(f"{topic}-*")} == {f"{topic}-0", f"{topic}-1"}
    assert (folder / f"{topic}-0" / f"{0:020}.log").stat().st_size + (folder / f"{topic}-1" / f"{0:020}.log").stat().st_size > 0


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
