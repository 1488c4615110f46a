"""A quorum that changes its voters: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kafkacourse.quorum import all_voters_heard
from kafkalab import Cluster, LedgerProducer, wait_until
from kafkalab.workers import Acknowledgement
from support import BACKEND, PATIENCE, Told, Verdict, create, led, wait_for, wait_for_level

pytestmark = pytest.mark.cluster

ADDED, REMOVED, MAJORITY = "12_controller_added", "12_active_removed", "12_majority_back"
LEDGER = "12_quorum_ledger"


@dataclass
class Ledger:
    """What a check looks at in a `LedgerProducer`."""

    entries: list[Acknowledgement]
    failed: int = 0


@pytest.fixture
def governed() -> Iterator[Cluster]:
    """A broker and three controllers. Who voted can't be undone for the next test."""
    with Cluster(brokers=1, controllers=3, backend=BACKEND) as cluster:
        yield cluster


def tool(cluster: Cluster, name: str, *words: str) -> str:
    command = [f"{name}.sh", "--bootstrap-server", cluster.bootstrap_servers, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def properties(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def add(cluster: Cluster, controller: int) -> None:
    """Let a controller vote. The active one asks it what it supports, and gives up when the answer takes more than 2 s."""
    name, config = "kafka-metadata-quorum", str(cluster.clients.controller_config(controller))
    said = ""

    def votes() -> bool:
        nonlocal said
        try:
            said = tool(cluster, name, "--command-config", config, "add-controller")
        except subprocess.CalledProcessError as error:
            said = error.stderr
        return led(cluster).brokers[controller].voter

    wait_until(votes, PATIENCE, f"controller {controller} to vote", last_seen=lambda: said)


def remove(cluster: Cluster, controller: int) -> None:
    settings = properties(cluster.clients.controller_config(controller))
    folder = properties(Path(settings["log.dirs"], "meta.properties"))["directory.id"]
    ids = ["--controller-id", str(controller), "--controller-directory-id", folder]
    tool(cluster, "kafka-metadata-quorum", "remove-controller", *ids)
    wait_for(cluster, lambda view: view.controller not in (None, controller), "an active controller")


def active(cluster: Cluster) -> int:
    found = led(cluster).controller
    assert found is not None
    return found


def test_dynamic_quorum(governed: Cluster, verdict: Verdict) -> None:
    cluster = governed
    create(cluster, "payments", 1, 1)
    ledger = LedgerProducer(cluster, "payments", rate=50, enable_idempotence=True)
    ledger.wait_for(5)
    verdict.says("Broker 0 says that kraft.version is finalized at level 0, not 1", ADDED, cluster)
    wait_for(cluster, lambda view: all_voters_heard(cluster, view.controller), "every voter to be heard")
    tool(cluster, "kafka-features", "upgrade", "--feature", "kraft.version=1")
    wait_for_level(cluster, "kraft.version", 1)
    verdict.says("The voters are 100, 101, 102. Controllers that only follow the log: none", ADDED, cluster)
    new = cluster.nodes.add_controller()
    verdict.says("Controllers that only follow the log: 103", ADDED, cluster)
    add(cluster, new)
    verdict.passes(ADDED, cluster)

    first = active(cluster)
    verdict.says("Give check() your answer as active=", REMOVED, cluster)
    verdict.says("Node 0 isn't a controller", REMOVED, cluster, active=0)
    verdict.says(f"Controller {first} is still one of the voters: 100, 101, 102, 103", REMOVED, cluster, active=first)
    other = next(i for i in (100, 101, 102) if i != first)
    remove(cluster, other)
    verdict.says(f"By its log, controller {other} never resigned", REMOVED, cluster, active=other)
    remove(cluster, first)
    verdict.says("2 controllers can vote", REMOVED, cluster, active=first)
    add(cluster, other)
    verdict.passes(REMOVED, cluster, active=first)
    verdict.passes(ADDED, cluster)  # with other voters than before

    verdict.says("You killed 0 controllers", MAJORITY, cluster)
    verdict.says("You killed 0 controllers", LEDGER, cluster)
    verdict.says("You killed 1 controller.", MAJORITY, Told(cluster, ("kill", 0), ("kill", first)))
    leader = active(cluster)
    dead = [leader, next(i for i in (100, 101, 102) if i not in (first, leader))]
    for controller in dead:
        cluster.kill(controller)
    wait_for(cluster, lambda view: view.controller is None, "no controller")
    verdict.says("No controller is active. Of the controllers,", MAJORITY, cluster)
    verdict.says("No controller is active, so nobody can tell who votes", ADDED, cluster)
    cluster.restart(dead[0])
    ledger.wait_for(ledger.acknowledged + 5)
    ledger.stop()

    verdict.passes(MAJORITY, cluster)
    verdict.passes(LEDGER, cluster, ledgers={"payments": ledger})
    last = max(fault.at for fault in cluster.nodes.faults)
    entries = ledger.entries
    verdict.says("Give check() your answer as ledgers=", LEDGER, cluster)
    late = Ledger([e for e in entries if e.at > last])
    verdict.says("The ledger has no record from before the first add", LEDGER, cluster, ledgers={"payments": late})
    early = Ledger([e for e in entries if e.at < last])
    verdict.says("The ledger ends before the last restart", LEDGER, cluster, ledgers={"payments": early})
    lost = Ledger([*entries, replace(entries[0], value="never sent")])
    verdict.says("payments has 1 lost write, such as 'never sent'", LEDGER, cluster, ledgers={"payments": lost})
    verdict.says("The producer gave 3 records up", LEDGER, cluster, ledgers={"payments": Ledger(entries, failed=3)})
    cluster.restart(dead[1])  # another right way: all of them are back
    verdict.says("The ledger ends before the last restart", LEDGER, cluster, ledgers={"payments": ledger})
    longer = Ledger([*entries, replace(entries[-1], at=entries[-1].at + 3600)])
    verdict.passes(LEDGER, cluster, ledgers={"payments": longer})
