"""A cluster whose controller is a node of its own, on every back end: it stays, whatever happens to the brokers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract_support import DOCKER_AT_LENGTH, configs, count_records, in_sync, make_topic, send
from kafkalab import Cluster, wait_until
from kafkalab.cluster.wire import BrokerConnection, Metadata
from kafkalab.errors import BrokerNotRunning, UnknownBroker
from support import PATIENCE, led

pytestmark = DOCKER_AT_LENGTH

# Who is cut off gives up its connection after each second, not each other one.
SETTINGS = {"num.partitions": 5, "num.io.threads": 3, "controller.quorum.request.timeout.ms": 1000}

# Two brokers that fail at once. Each fault stands in one of the first two pairs.
PAIRS = [("isolate", "kill"), ("stop_broker", "pause")]
MORE_PAIRS = [("kill", "kill"), ("kill", "pause"), ("pause", "isolate"), ("kill", "isolate")]
MEND = {"kill": "restart", "stop_broker": "restart", "pause": "resume", "isolate": "heal"}


@pytest.fixture(scope="module")
def dedicated(backend: str) -> Iterator[Cluster]:
    with Cluster(3, controllers=1, racks=["r1", "r2"], settings=SETTINGS, backend=backend) as cluster:
        yield cluster


def test_racks_settings_and_who_votes(dedicated: Cluster) -> None:
    view = led(dedicated)
    assert view.controller == 100
    with pytest.raises(UnknownBroker, match="node 100 is a dedicated controller"):
        dedicated.clients.bootstrap(100)
    racks = {i: (b.rack, b.voter) for i, b in view.brokers.items()}
    assert racks == {0: ("r1", False), 1: ("r2", False), 2: ("r1", False), 100: (None, True)}
    told = configs(dedicated)
    assert told["num.partitions"].value == "5"
    assert told["num.io.threads"].value == "3"  # the learner's setting wins over the lesson's


def test_cut_off_until_it_looks_for_the_controller_anew(dedicated: Cluster) -> None:
    gave_up = "[RaftManager id=0] Disconnecting from node 100"
    before = dedicated.nodes.logs(0).count(gave_up)
    dedicated.isolate(0)
    wait_until(
        lambda: dedicated.nodes.logs(0).count(gave_up) >= before + 3,
        PATIENCE,
        "broker 0 to give up its connections",
        interval=0.2,
    )
    dedicated.heal(0, timeout=PATIENCE)
    assert dedicated.describe(groups=False).brokers[0].state == "up"


def test_who_is_cut_off_does_not_speak_for_those_that_are_slow(dedicated: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = make_topic(dedicated)
    dedicated.isolate(1)
    dedicated.wait_for(lambda v: v.out_of_sync(topic, 1), "it to be fenced")
    own, slow = BrokerConnection.metadata, [True] * 4
    cut_off = dedicated._lifecycle.access().control_address(1)

    def metadata(connection: BrokerConnection) -> Metadata:
        if connection.address != cut_off and slow:
            slow.pop()
            raise TimeoutError
        return own(connection)

    monkeypatch.setattr(BrokerConnection, "metadata", metadata)
    view = dedicated.describe(groups=False)
    assert not slow
    assert view.out_of_sync(topic, 1)
    for broker in (0, 2):  # now nobody is left who knows better
        dedicated.pause(broker)
    assert all(1 in p.isr for p in dedicated.describe(groups=False).topics[topic])
    dedicated.resume(0)  # the one that is cut off can't tell whether it's back, and isn't asked
    dedicated.heal(1)
    dedicated.resume(2)
    in_sync(dedicated, topic)


@pytest.mark.parametrize(
    ("first", "second"), [*PAIRS, *[pytest.param(*pair, marks=pytest.mark.at_length) for pair in MORE_PAIRS]]
)
def test_two_of_three_fail_at_once(dedicated: Cluster, first: str, second: str) -> None:
    """Each in its own way. The third takes records alone, and the cluster comes back whole."""
    topic = make_topic(dedicated, 3)
    getattr(dedicated, first)(0)
    getattr(dedicated, second)(1)
    alone = dict.fromkeys(range(3), (2,))
    dedicated.wait_for(lambda v: v.isr(topic) == alone, "broker 2 to be left alone", PATIENCE)
    # A client that meets both sides of a partition is told two stories by turns; this one starts from the right side.
    assert send(dedicated, topic, 10, dedicated.clients.bootstrap(2)) == [None] * 10
    getattr(dedicated, MEND[first])(0)
    getattr(dedicated, MEND[second])(1)
    in_sync(dedicated, topic)
    assert count_records(dedicated, topic) == 10


def properties(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def test_a_controller_is_added(dedicated: Cluster) -> None:
    """It follows the log, and doesn't vote."""
    assert dedicated.nodes.add_controller() == 101
    seen = led(dedicated).brokers[101]
    assert (seen.state, seen.address, seen.voter) == ("up", "", False)
    settings = properties(dedicated.clients.controller_config(101))
    own = properties(Path(settings["log.dirs"], "meta.properties"))
    assert (settings["node.id"], own["node.id"]) == ("101", "101")


def test_an_added_controller_votes_and_comes_back(dedicated: Cluster) -> None:
    """It comes back with its log, and with its vote. The cluster has two voters from here on: this test is the last one."""
    tools = ["--bootstrap-server", dedicated.bootstrap_servers]
    subprocess.run(["kafka-features.sh", *tools, "upgrade", "--feature", "kraft.version=1"], check=True)
    config = str(dedicated.clients.controller_config(101))
    subprocess.run(["kafka-metadata-quorum.sh", *tools, "--command-config", config, "add-controller"], check=True)
    both = dedicated.wait_for(lambda view: all(view.brokers[i].voter for i in (100, 101)) and view, "two voters")
    assert both.controller == 100
    dedicated.kill(101)
    with pytest.raises(BrokerNotRunning):
        dedicated.kill(101)
    dedicated.wait_for(lambda view: view.controller is None, "no majority: one of two is none")
    dedicated.restart(101)
    view = led(dedicated)
    assert view.controller in (100, 101) and view.brokers[101].voter
    assert dedicated.add_broker() == 3  # somebody registers it
