"""What each verb of `Cluster` guarantees when it returns, on every back end: three brokers that are controllers, too."""

from __future__ import annotations

import signal
import threading

import psutil
import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from contract_support import DOCKER_AT_LENGTH, ONLY_LOCAL, configs, count_records, in_sync, make_topic, send
from kafkalab import Cluster, LedgerProducer, wait_until
from kafkalab.cluster import ClusterView
from kafkalab.cluster.wire import BrokerConnection
from kafkalab.errors import (
    BackendUnavailable,
    BrokerFailed,
    BrokerNotRunning,
    FaultsUnsupported,
    KafkaLabError,
    UnknownBroker,
    UnknownListener,
    UnknownUser,
)
from kafkalab.widgets import Timeline
from support import PATIENCE, led


def test_start_returns_a_cluster_that_agrees(shared: Cluster) -> None:
    answers = [BrokerConnection(shared.clients.bootstrap(i), timeout=10).metadata() for i in range(3)]
    assert all(set(a.brokers) == {0, 1, 2} for a in answers)
    view = led(shared)
    assert view.controller in (0, 1, 2)
    assert [b.state for b in view.brokers.values()] == ["up"] * 3
    assert sum(b.controller for b in view.brokers.values()) == 1
    assert len(shared.bootstrap_servers.split(",")) == 3
    assert shared.start() is shared  # a running cluster is left as it is
    assert "Kafka Server started" in shared.nodes.logs(0)


def test_each_broker_tells_its_feature_levels(shared: Cluster) -> None:
    told = shared.nodes.features()
    assert sorted(told) == [0, 1, 2]
    for features in told.values():
        assert features.supported["metadata.version"] >= features.finalized["metadata.version"] >= 30
        assert features.finalized["share.version"] == 1


def test_kill_and_restart_keep_address_and_data(shared: Cluster) -> None:
    topic = make_topic(shared)
    assert send(shared, topic, 50) == [None] * 50
    leader = shared.describe(groups=False).leaders(topic)[0]
    address = shared.clients.bootstrap(leader)
    shared.kill(leader)
    assert shared.describe(groups=False).brokers[leader].state == "dead"
    for verb in (shared.kill, shared.stop_broker, shared.pause, shared.isolate):
        with pytest.raises(BrokerNotRunning, match=f"broker {leader}: it is dead"):
            verb(leader)
    shared.wait_for(lambda v: v.moved_from(topic, leader), "new leaders")
    view = shared.describe(groups=False)
    assert all(leader not in p.isr and leader in p.replicas for p in view.topics[topic])
    assert send(shared, topic, 50) == [None] * 50
    shared.restart(leader)
    assert shared.describe(groups=False).brokers[leader].state == "up"
    assert shared.clients.bootstrap(leader) == address
    in_sync(shared, topic)
    assert shared.describe(groups=False).moved_from(topic, leader)  # leaders move back only when asked to
    assert count_records(shared, topic) == 100


@DOCKER_AT_LENGTH
def test_stop_broker_hands_leadership_over_first_as_a_timeline_shows(shared: Cluster) -> None:
    """A stop takes a while, and leaders move meanwhile: the timeline counts from the fault that is under way."""
    topic = make_topic(shared)
    producer = LedgerProducer(shared, topic, rate=50)
    timeline = Timeline(shared, producer)
    try:
        wait_until(lambda: timeline.gaps, PATIENCE, "acknowledgements")
        shared.stop_broker(1)
        view = shared.describe(groups=False)
        assert view.brokers[1].state == "stopped"
        assert view.moved_from(topic, 1)
        changes = wait_until(lambda: [m for m in timeline._marks() if m.kind == "leader"], PATIENCE, "new leaders to be seen")
    finally:
        timeline.close()
        producer.stop()
    (stop,) = [fault for fault in shared.nodes.faults[-1:] if fault.verb == "stop"]
    assert [m.text for m in changes] == [f"new leaders after {m.at - stop.at:.1f} s" for m in changes]
    shared.restart(1)
    in_sync(shared, topic)


def test_restart_with_other_settings_names_the_reason_of_this_life_and_connects_the_broker_again(shared: Cluster) -> None:
    topic = make_topic(shared)
    shared.isolate(2)
    shared.wait_for(lambda v: v.out_of_sync(topic, 2), "it to be fenced")
    with pytest.raises(BrokerFailed, match=r"log.retention.hours"):  # one that runs
        shared.restart(2, settings={"num.partitions": 7, "auto.create.topics.enable": False, "log.retention.hours": "three"})
    with pytest.raises(BrokerFailed, match=r"num.io.threads") as caught:
        shared.restart(2, settings={"log.retention.hours": 3, "num.io.threads": "none"})
    assert "log.retention.hours" not in str(caught.value)
    shared.restart(2, settings={"num.io.threads": 2})
    assert shared.describe(groups=False).brokers[2].state == "up"
    told = configs(shared, 2)
    wanted = {"num.partitions": "7", "auto.create.topics.enable": "false", "log.retention.hours": "3", "num.io.threads": "2"}
    assert {name: told[name].value for name in wanted} == wanted
    in_sync(shared, topic)


def test_pause_and_resume(shared: Cluster) -> None:
    topic = make_topic(shared)
    shared.pause(0)
    assert shared.describe(groups=False).brokers[0].state == "paused"
    shared.wait_for(lambda v: v.moved_from(topic, 0), "leaders away from the paused broker")
    assert send(shared, topic, 20) == [None] * 20
    shared.resume(0)
    assert shared.describe(groups=False).brokers[0].state == "up"
    in_sync(shared, topic)


def test_isolate_and_heal(shared: Cluster) -> None:
    """The active controller: it can't keep the others from electing another one."""
    topic = make_topic(shared, min_insync_replicas="2")
    broker = led(shared).controller
    shared.isolate(broker)
    assert shared.describe(groups=False).brokers[broker].state == "isolated"
    shared.wait_for(lambda v: v.moved_from(topic, broker) and v.out_of_sync(topic, broker), "it to be fenced")
    # Clients still reach it, and it knows nothing new.
    alone = BrokerConnection(shared.clients.bootstrap(broker), timeout=10).metadata()
    assert topic in alone.topics
    assert send(shared, topic, 20, shared.clients.bootstrap((broker + 1) % 3)) == [None] * 20
    shared.heal(broker)
    assert shared.describe(groups=False).brokers[broker].state == "up"
    in_sync(shared, topic)
    assert count_records(shared, topic) == 20


@pytest.mark.at_length  # every day another test starts one anew, with other settings
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


@DOCKER_AT_LENGTH
def test_heal_does_not_wait_for_a_controller_that_is_still_cut_off(shared: Cluster) -> None:
    """The broker that was left alone has passed a question on to that controller, and asks no other before it gives up."""
    controller = led(shared).controller
    healed, left = (controller + 1) % 3, (controller + 2) % 3
    shared.isolate(healed)
    shared.isolate(controller)
    with pytest.raises(OSError):
        BrokerConnection(shared.clients.bootstrap(left)).quorum()
    shared.heal(healed, timeout=PATIENCE)
    shared.wait_for(lambda v: v.controller in (healed, left), "another controller to be seen", PATIENCE)
    shared.heal(controller)


def test_errors_name_what_is_wrong(shared: Cluster) -> None:
    with pytest.raises(UnknownBroker, match="there is no broker 7 in this cluster; it has 0, 1, 2"):
        shared.kill(7)
    with pytest.raises(UnknownBroker, match="there is no broker '0' in this cluster"):
        shared.kill("0")
    with pytest.raises(UnknownListener, match="there is no listener 'NOSUCH'; there are PLAINTEXT"):
        shared.clients.bootstrap(0, "NOSUCH")
    with pytest.raises(UnknownUser, match="there is no user 'nobody': this cluster has none"):
        shared.client_config("nobody")
    for ask in (lambda: shared.security, lambda: shared.clients.java_config("admin")):
        with pytest.raises(KafkaLabError, match="not made with security"):
            ask()
    with pytest.raises(KafkaLabError, match="it has no remote tier"):
        shared.disk.remote_tier  # noqa: B018
    with pytest.raises(ValueError, match=r"the setting num.partitions has no value"):
        shared.restart(0, settings={"num.partitions": None})
    with pytest.raises(BrokerNotRunning, match="cannot resume broker 0: it is up"):
        shared.resume(0)
    with pytest.raises(BrokerNotRunning, match="cannot heal broker 0: it is up"):
        shared.heal(0)


@ONLY_LOCAL
def test_a_killed_node_may_be_gone_before_kill_has_done_all_it_does(shared: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster's map, say, looks at the same moment: whoever looks first takes leave of the process."""
    send_signal = psutil.Process.send_signal

    def seen_by_another(process: psutil.Process, sign: signal.Signals) -> None:
        send_signal(process, sign)
        if sign == signal.SIGKILL:
            wait_until(
                lambda: shared.nodes.states()[1] == "dead" and not psutil.pid_exists(process.pid),
                PATIENCE,
                "the end to be seen",
            )

    monkeypatch.setattr(psutil.Process, "send_signal", seen_by_another)
    shared.kill(1)
    assert shared.nodes.states()[1] == "dead"
    shared.restart(1)


def test_a_paused_broker_can_be_killed_and_killed_again_while_it_restarts(shared: Cluster) -> None:
    topic = make_topic(shared)
    shared.pause(1)
    shared.kill(1)
    assert shared.describe(groups=False).brokers[1].state == "dead"
    outcome: list[BaseException | None] = []

    def restart() -> None:
        try:
            shared.restart(1)
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    restarting = threading.Thread(target=restart)
    lives = shared.nodes.logs(1).count("Registered signal handlers")
    restarting.start()
    wait_until(
        lambda: shared.nodes.logs(1).count("Registered signal handlers") > lives,
        PATIENCE,
        "the broker to have begun anew",
        interval=0.005,
    )
    shared.kill(1)
    restarting.join(PATIENCE)
    assert isinstance(outcome[0], BrokerNotRunning), outcome
    assert "before it was ready" in str(outcome[0])
    shared.restart(1)
    in_sync(shared, topic)


GROUPS = {"classic": "group-classic", "consumer": "group-consumer"}  # by their names both have the same coordinator


@DOCKER_AT_LENGTH
def test_describe_shows_groups_and_goes_on_when_their_coordinator_dies(shared: Cluster) -> None:
    topic = make_topic(shared, 1)
    assert send(shared, topic, 20) == [None] * 20
    consumers = {
        group: Consumer(
            shared.client_config(
                group_id=group, group_protocol=protocol, auto_offset_reset="earliest", enable_auto_commit=False
            )
        )
        for protocol, group in GROUPS.items()
    }

    def lags(view: ClusterView) -> list[int]:
        return [sum(view.groups[group].lag.values()) for group in consumers if view.groups[group].lag]

    try:
        for consumer in consumers.values():
            consumer.subscribe([topic])
            assert len(consumer.consume(20, 60)) == 20
            consumer.commit(asynchronous=False)
        view = shared.wait_for(
            lambda v: v if all(v.groups[group].state == "Stable" for group in consumers) and lags(v) == [0, 0] else None,
            "stable groups that lag behind by nothing",
            groups=True,
        )
        assert [m.partitions for group in consumers for m in view.groups[group].members] == [((topic, 0),)] * 2
        described = [(view.groups[group].protocol, view.groups[group].assignor) for group in consumers]
        assert described == [("classic", "range"), ("consumer", "uniform")]
        assert send(shared, topic, 5) == [None] * 5
        shared.wait_for(lambda v: lags(v) == [5, 5], "a lag of 5", groups=True)

        admin = AdminClient(shared.client_config())
        futures = admin.describe_consumer_groups([*consumers])
        (coordinator,) = {futures[group].result().coordinator.id for group in consumers}
        shared.kill(coordinator)
        shared.wait_for(
            lambda v: not v.silent and v.brokers[coordinator].state == "dead" and consumers.keys() <= v.groups.keys(),
            "the groups at their new coordinator",
            PATIENCE,
            groups=True,
        )
    finally:
        for consumer in consumers.values():
            consumer.close()
    shared.restart(coordinator)
    in_sync(shared, topic)


def test_a_version_that_cannot_be_had_leaves_the_broker_running(shared: Cluster) -> None:
    for version in ("4.2", "0.0.1"):
        with pytest.raises(ValueError, match="version of Kafka is text like"):
            shared.restart(0, version=version)
    with pytest.raises((ValueError, BackendUnavailable), match=r"9\.9\.9"):
        shared.restart(0, version="9.9.9")
    assert shared.nodes.states()[0] == "up"


def test_copy_log_dir(shared: Cluster) -> None:
    topic = make_topic(shared, 2)
    send(shared, topic, 10)
    folder = shared.disk.copy_log_dir(0)
    assert {p.name for p in folder.glob(f"{topic}-*")} == {f"{topic}-0", f"{topic}-1"}
    assert (folder / f"{topic}-0" / f"{0:020}.log").stat().st_size + (folder / f"{topic}-1" / f"{0:020}.log").stat().st_size > 0
    make_topic(shared)
    assert {p.name for p in shared.disk.copy_log_dir(0, topic).iterdir()} == {f"{topic}-0", f"{topic}-1"}


@DOCKER_AT_LENGTH
def test_attached(shared: Cluster) -> None:
    topic = make_topic(shared)
    with Cluster.attached(shared.bootstrap_servers) as attached:
        assert attached.nodes.backend == "attached"
        assert send(attached, topic, 5) == [None] * 5
        view = attached.describe()
        assert set(view.brokers) == {0, 1, 2} and topic in view.topics
        for verb in (attached.kill, attached.pause, attached.restart, attached.isolate):
            with pytest.raises(FaultsUnsupported, match="not ours to break"):
                verb(0)
        with pytest.raises(FaultsUnsupported):
            attached.add_broker()
        with pytest.raises(FaultsUnsupported):
            attached.nodes.add_controller()
        with pytest.raises(BackendUnavailable, match="settings of an attached cluster"):
            attached.clients.controller_config(0)
    assert shared.describe().brokers[0].state == "up"
