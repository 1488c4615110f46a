"""The failsafe topic: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kafkalab import Cluster, ConsoleConsumer
from kafkalab.cluster import ClusterView, Fault
from kafkalab.distribution import put_tools_on_path
from kafkalab.workers import wait_until_shared
from support import PATIENCE, Doctored, Verdict, commit, create, spread, wait_for

pytestmark = pytest.mark.cluster

TOPIC = "my-failsafe-topic"
GREETINGS = ["Hi mom", "How are you?", "How are things going?", "Good!", "message 1", "message 2", "message 3"]


def m(first: int, last: int) -> list[str]:
    return [f"m{n}" for n in range(first, last + 1)]


# -- 02_three_brokers -------------------------------------------------------------------------------------------------

ORDINALS = ("1st", "2nd", "3rd")


def configuration(n: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(n),
        "listeners": f"PLAINTEXT://localhost:{9092 + n},CONTROLLER://localhost:{9192 + n}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9192,localhost:9193,localhost:9194",
        "log.dirs": f"./logs/kafka-{n}",
        "offsets.topic.replication.factor": "3",
    }


def write(folder: Path, *, formatted: bool = True, scripts: bool = True, **changed: Mapping[str, str]) -> None:
    """The three files, of which some are changed: ``n1={"node.id": "0"}``."""
    for n, ordinal in enumerate(ORDINALS):
        settings = {**configuration(n), **changed.get(f"n{n}", {})}
        (folder / f"server-{n}.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if scripts:
            (folder / f"start-{ordinal}-server.sh").write_text(f"#!/bin/sh\nexec kafka-server-start.sh server-{n}.properties\n")
        if formatted:
            data = folder / settings["log.dirs"]
            data.mkdir(parents=True, exist_ok=True)
            (data / "meta.properties").write_text(f"version=1\ncluster.id=abc\nnode.id={settings['node.id']}\n")


def only_two(folder: Path) -> None:
    write(folder)
    (folder / "server-1.properties").unlink()


def copied_unchanged(folder: Path) -> None:
    write(folder, n1=configuration(0), n2=configuration(0))


def ids_alike(folder: Path) -> None:
    write(folder, n2={"node.id": "1"})


def port_twice(folder: Path) -> None:
    write(folder, n1={"listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9193"})


def controller_port_twice(folder: Path) -> None:
    write(folder, n2={"listeners": "PLAINTEXT://localhost:9094,CONTROLLER://localhost:9192"})


def one_port_for_both_roles(folder: Path) -> None:
    write(folder, n2={"listeners": "PLAINTEXT://localhost:9094,CONTROLLER://localhost:9094"})


def no_controller_listener(folder: Path) -> None:
    write(folder, n2={"listeners": "PLAINTEXT://localhost:9094"})


def folder_shared(folder: Path) -> None:
    write(folder, n2={"log.dirs": "./logs/kafka-1"})


def no_folder_named(folder: Path) -> None:
    write(folder, formatted=False, n2={"log.dirs": ""})


def controllers_differ(folder: Path) -> None:
    write(folder, n1={"controller.quorum.bootstrap.servers": "localhost:9193"})


def controllers_elsewhere(folder: Path) -> None:
    controllers = {"controller.quorum.bootstrap.servers": "localhost:9092,localhost:9093,localhost:9094"}
    write(folder, n0=controllers, n1=controllers, n2=controllers)


def controllers_unnamed(folder: Path) -> None:
    nobody = {"controller.quorum.bootstrap.servers": ""}
    write(folder, n0=nobody, n1=nobody, n2=nobody)


def offsets_kept_once(folder: Path) -> None:
    write(folder, n0={"offsets.topic.replication.factor": "1"})


def not_formatted(folder: Path) -> None:
    write(folder, formatted=False)


def formatted_for_two_clusters(folder: Path) -> None:
    write(folder)
    (folder / "logs/kafka-2/meta.properties").write_text("version=1\ncluster.id=other\nnode.id=2\n")


def formatted_before_the_id_was_set(folder: Path) -> None:
    write(folder)
    (folder / "logs/kafka-2/meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=0\n")


def no_scripts(folder: Path) -> None:
    write(folder, scripts=False)


def first_script_starts_the_third(folder: Path) -> None:
    write(folder)
    (folder / "start-1st-server.sh").write_text("exec kafka-server-start.sh server-2.properties\n")


def a_script_that_starts_nothing(folder: Path) -> None:
    write(folder)
    (folder / "start-2nd-server.sh").write_text("cat server-1.properties\n")


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (only_two, "There is no server-1.properties"),
        (copied_unchanged, "How do brokers tell each other apart?"),
        (ids_alike, "server-2.properties has node.id=1"),
        (port_twice, "The PLAINTEXT listener of node 1 uses port 9092, which node 0 uses already"),
        (controller_port_twice, "The CONTROLLER listener of node 2 uses port 9192, which node 0 uses already"),
        (one_port_for_both_roles, "uses port 9094, which this node uses already"),
        (no_controller_listener, "server-2.properties has no listener CONTROLLER"),
        (folder_shared, "would both write to ./logs/kafka-1"),
        (no_folder_named, "server-2.properties doesn't say where node 2 keeps its data"),
        (controllers_differ, "Do these addresses belong to one node, or to the cluster?"),
        (controllers_elsewhere, "but the CONTROLLER listener of node 0 uses port 9192"),
        (controllers_unnamed, "names no port, but the CONTROLLER listener of node 0"),
        (offsets_kept_once, "In which topic does Kafka keep them"),
        (not_formatted, "isn't formatted"),
        (formatted_for_two_clusters, "formatted for different clusters"),
        (formatted_before_the_id_was_set, "was formatted for node 0"),
        (no_scripts, "There is no start-1st-server.sh"),
        (first_script_starts_the_third, "Which node is the 1st?"),
        (a_script_that_starts_nothing, "start-2nd-server.sh doesn't run kafka-server-start.sh"),
    ],
)
def test_three_brokers_wrong(
    cluster: Cluster, verdict: Verdict, tmp_path: Path, wrong: Callable[[Path], None], helps: str
) -> None:
    wrong(tmp_path)
    verdict.says(helps, "02_three_brokers", cluster, folder=tmp_path)


def test_a_missing_file_is_told_once(cluster: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    _, printed = verdict("02_three_brokers", cluster, folder=tmp_path)
    assert printed.count("There is no") == 1
    assert "1 of 9 requirements" in printed  # the cluster is up, the files are missing


def test_three_brokers_right(cluster: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    write(tmp_path, formatted=False)
    put_tools_on_path()
    folder_ids = ("MvDxzVmcRsaTz33bUuRU6A", "07R5amHmR32VDA6jHkGbTA", "zXLLsXvsSx-ZXnGWd1aWSA")
    voters = ",".join(f"{n}@localhost:{9192 + n}:{folder_id}" for n, folder_id in enumerate(folder_ids))
    for n in range(3):
        command = ["kafka-storage.sh", "format", "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--initial-controllers", voters]
        subprocess.run([*command, "--config", f"server-{n}.properties"], cwd=tmp_path, check=True, capture_output=True)
    verdict.passes("02_three_brokers", cluster, folder=str(tmp_path))


def test_three_brokers_written_in_another_way(cluster: Cluster, verdict: Verdict, tmp_path: Path) -> None:
    """What Kafka reads alike is right alike: other separators, controllers in another order, `log.dir`."""
    write(tmp_path)
    shuffled = {"controller.quorum.bootstrap.servers": "localhost:9194,localhost:9192,localhost:9193"}
    text = "".join(f"{name} : {value}\n" for name, value in {**configuration(1), **shuffled}.items())
    (tmp_path / "server-1.properties").write_text("! by hand\n\n" + text.replace("log.dirs", "log.dir"))
    verdict.passes("02_three_brokers", cluster, folder=tmp_path)


def test_three_brokers_without_a_folder(cluster: Cluster, verdict: Verdict) -> None:
    verdict.says("folder=", "02_three_brokers", cluster)


# -- 02_failsafe ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (lambda c: None, "There is no topic 'my-failsafe-topic'"),
        (lambda c: create(c, "my-topic", 13), "The cluster's topics: my-topic"),
        (lambda c: create(c, TOPIC, 3), "my-failsafe-topic has 3 partitions"),
        (lambda c: create(c, TOPIC, 13, 1), "has 1 replica, not 3"),
        (lambda c: create(c, TOPIC, 13), " is 1. You can set it when you create the topic"),
        (lambda c: create(c, TOPIC, 13, placed=[[0, 1, 2]] * 13), "Did you assign the replicas yourself?"),
    ],
    ids=["nothing", "another_name", "three_partitions", "one_replica", "one_copy_is_enough", "all_led_by_one"],
)
def test_failsafe_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], None], helps: str) -> None:
    wrong(clean)
    verdict.says(helps, "02_failsafe", clean)


def table_of(cluster: Cluster) -> dict[int, tuple[int | None, list[int], list[int]]]:
    return {p.partition: (p.leader, list(p.replicas), list(p.isr)) for p in cluster.describe().topics[TOPIC]}


def test_failsafe_and_describe(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 13, min_insync_replicas="2")
    verdict.passes("02_failsafe", clean)
    lagging = Doctored(clean, TOPIC, lambda p: replace(p, isr=p.isr[:2]))
    verdict.says("did it have time to catch up?", "02_failsafe", lagging)

    right = table_of(clean)
    leader, replicas, isr = right[0]
    assert leader is not None
    wrong: list[tuple[object, str]] = [
        ({}, "`table` is empty"),
        ([(0, 1)], "`table` should be a dictionary"),
        ({n: right[n] for n in range(12)}, "no row for partition 12"),
        ({n + 1: row for n, row in right.items()}, "has a row 13"),
        ({**right, 3: (None, *right[3][1:])}, "Row 3 is (None"),
        ({**right, 0: ((leader + 1) % 3, replicas, isr)}, f"Broker {(leader + 1) % 3} doesn't lead partition 0"),
        ({**right, 0: (leader, replicas[::-1], isr)}, "right, but not their order"),
        ({**right, 0: (leader, [0, 1, 7], isr)}, "replicas on other brokers than [0, 1, 7]"),
        ({**right, 0: (leader, replicas, isr[:2])}, "The ISR of partition 0 isn't"),
        ({n: row[:2] for n, row in right.items()}, "It should be (leader, replicas, isr)"),
    ]
    for table, helps in wrong:
        verdict.says(helps, "02_describe", clean, table=table)
    verdict.says("Give check() your answer as table=", "02_describe", clean)
    verdict.passes("02_describe", clean, table=right)
    in_other_types = {np.int64(n): [np.int64(row[0]), tuple(row[1]), set(row[2])] for n, row in right.items()}
    verdict.passes("02_describe", clean, table=in_other_types)


# -- 02_publish_subscribe ---------------------------------------------------------------------------------------------


def one_group_for_all(cluster: Cluster) -> None:
    spread(cluster, TOPIC, *GREETINGS)
    commit(cluster, "readers", TOPIC)


def late_ones_from_the_end(cluster: Cluster) -> None:
    spread(cluster, TOPIC, *GREETINGS)
    commit(cluster, "first", TOPIC)
    for group in ("second", "third"):
        commit(cluster, group, TOPIC, {4: 1, 5: 1, 6: 1})  # where message 1 … message 3 are


def not_all_sent(cluster: Cluster) -> None:
    spread(cluster, TOPIC, *GREETINGS[:6])


def sent_twice(cluster: Cluster) -> None:
    spread(cluster, TOPIC, *GREETINGS, *GREETINGS[:2])


@pytest.mark.parametrize(
    ("wrong", "helps"),
    [
        (lambda c: None, "None of 'Hi mom' … 'message 3' is in my-failsafe-topic yet"),
        (one_group_for_all, "1 group committed offsets in the topic"),
        (late_ones_from_the_end, "Where does a new group start in the log"),
        (not_all_sent, "'message 3' isn't in my-failsafe-topic"),
        (sent_twice, "'Hi mom' is in my-failsafe-topic 2 times"),
    ],
    ids=["nothing", "one_group", "late_ones", "not_all_sent", "sent_twice"],
)
def test_publish_subscribe_wrong(clean: Cluster, verdict: Verdict, wrong: Callable[[Cluster], None], helps: str) -> None:
    create(clean, TOPIC, 13)
    wrong(clean)
    verdict.says(helps, "02_publish_subscribe", clean)


def test_publish_subscribe_right(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 13)
    spread(clean, TOPIC, *GREETINGS)
    for group in ("first", "second", "third"):
        commit(clean, group, TOPIC)
    spread(clean, TOPIC, *m(1, 7))  # what comes later is another check's matter
    verdict.passes("02_publish_subscribe", clean)


# -- 02_load_sharing and 02_consumer_failover -------------------------------------------------------------------------


def member(cluster: Cluster, number: int, **settings: object) -> ConsoleConsumer:
    # Nobody kills it: on a busy machine one that is silent for 3 s would lose its partitions.
    settings = {"session.timeout.ms": 30_000, **settings}
    return ConsoleConsumer(cluster, TOPIC, group="mygroup", name=f"member-{number}", from_beginning=True, **settings)


def all_committed(cluster: Cluster) -> None:
    """Wait until ``mygroup`` has read and committed all that was spread over the first seven partitions."""

    def done(view: ClusterView) -> bool:
        lag = view.groups["mygroup"].lag  # nothing committed yet: no entry
        return set(range(7)) <= {p for _, p in lag} and not any(lag.values())

    wait_for(cluster, done, "commits of all seven", groups=True)


def test_load_sharing_and_consumer_failover(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 13)
    _, said = verdict("02_load_sharing", clean)
    assert "None of 'm1' … 'm7'" in said and "There is no consumer group 'mygroup' yet. The cluster's groups: none." in said
    assert "0 of 4" in said

    members = [member(clean, 1), member(clean, 2)]
    wait_until_shared(*members, timeout=PATIENCE)
    spread(clean, TOPIC, *m(1, 7))
    verdict.says("mygroup has 2 members, not 3", "02_load_sharing", clean)

    members.append(member(clean, 3))
    wait_until_shared(*members, timeout=PATIENCE)
    wait_for(clean, lambda v: len(v.groups["mygroup"].members) == 3, "three members", groups=True)
    all_committed(clean)
    verdict.passes("02_load_sharing", clean)

    _, said = verdict("02_consumer_failover", clean)
    assert "3 members, not 2. A member that was killed stays in the group" in said and "None of 'm8' … 'm14'" in said
    assert "0 of 4" in said

    members[2].close()
    members[1].close()
    wait_until_shared(members[0], timeout=PATIENCE)
    verdict.says("mygroup has 1 member, not 2", "02_consumer_failover", clean)

    members[1] = member(clean, 2)
    wait_until_shared(*members[:2], timeout=PATIENCE)
    spread(clean, TOPIC, *m(8, 14))
    members[0].wait_for(1, PATIENCE)
    all_committed(clean)
    verdict.passes("02_consumer_failover", clean)
    for one in members:
        one.close()
    verdict.says("mygroup has 0 members", "02_consumer_failover", clean)


def test_load_sharing_in_groups_of_their_own(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 13)
    spread(clean, TOPIC, *m(1, 7))
    for group in ("mygroup1", "mygroup2", "mygroup3"):
        commit(clean, group, TOPIC)
    verdict.says("The cluster's groups: mygroup1, mygroup2, mygroup3", "02_load_sharing", clean)


def test_load_sharing_without_commits(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 13)
    members = [member(clean, n, **{"enable.auto.commit": False}) for n in (1, 2, 3)]
    wait_until_shared(*members, timeout=PATIENCE)
    spread(clean, TOPIC, *m(1, 7))
    verdict.says("mygroup has no committed offset behind 'm1'", "02_load_sharing", clean)
    for one in members:
        one.close()


# -- 02_broker_failover and 02_failover_proof -------------------------------------------------------------------------


def without(cluster: Cluster, broker: int) -> None:
    wait_for(cluster, lambda v: v.moved_from(TOPIC, broker) and v.out_of_sync(TOPIC, broker), "new leaders")


def test_proof_sent_before_the_broker_went_down(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 13)
    spread(clean, TOPIC, "m15", "m16")
    clean.nodes.faults.clear()
    verdict.says("Broker 0 hasn't been down yet", "02_failover_proof", clean)
    clean.nodes.faults.append(Fault(time.time() + 1, "kill", 0))  # no broker has to die for it
    verdict.says("You sent 'm15' while broker 0 was up", "02_failover_proof", clean)
    # It was down when they were sent, came back for a while, and is down again.
    now = time.time()
    clean.nodes.faults[:] = [Fault(now - 60, "kill", 0), Fault(now + 1, "restart", 0), Fault(now + 2, "stop", 0)]
    _, said = verdict("02_failover_proof", clean)
    assert "while broker 0 was up" not in said
    clean.nodes.faults.clear()


def test_broker_failover_and_proof(breakable: Cluster, verdict: Verdict) -> None:
    create(breakable, TOPIC, 13)
    spread(breakable, TOPIC, *m(1, 14))
    commit(breakable, "mygroup", TOPIC)
    _, said = verdict("02_broker_failover", breakable)
    assert "Broker 0 is up." in said and "0 of 4" in said

    breakable.kill(1)
    without(breakable, 1)
    verdict.says("Broker 1 is down, but broker 0 is up", "02_broker_failover", breakable)
    breakable.restart(1)
    wait_for(breakable, lambda v: v.in_sync(TOPIC), "complete ISRs")

    breakable.kill(0)
    without(breakable, 0)
    verdict.passes("02_broker_failover", breakable)
    for change, helps in (
        (lambda p: replace(p, leader=p.replicas[0], isr=p.replicas), "Broker 0 still leads partition"),
        (lambda p: replace(p, isr=p.replicas), "Broker 0 is still in the ISR of partition 0"),
        (lambda p: replace(p, leader=None), "has no leader"),
        (lambda p: replace(p, isr=(2,)), "lacks broker 1, too"),
        (lambda p: replace(p, replicas=(1, 2)), "don't include broker 0"),
    ):
        verdict.says(helps, "02_broker_failover", Doctored(breakable, TOPIC, change))

    verdict.says("None of 'm15' … 'm16'", "02_failover_proof", breakable)
    spread(breakable, TOPIC, "m15")
    verdict.says("'m16' isn't in my-failsafe-topic", "02_failover_proof", breakable)
    spread(breakable, TOPIC, "m16")
    verdict.says("mygroup has no committed offset behind 'm15'", "02_failover_proof", breakable)
    commit(breakable, "mygroup", TOPIC)
    verdict.passes("02_failover_proof", breakable)
    breakable.restart(0)
    verdict.says("Broker 0 is up.", "02_failover_proof", breakable)
