"""Two replicas that go one after the other: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kafkalab import Cluster, LedgerProducer
from support import BACKEND, Doctored, Told, Verdict, create, wait_for, wait_for_level

pytestmark = pytest.mark.cluster

WITH, WITHOUT, LEDGER = "12_elr", "12_without_elr", "12_elr_ledger"


@pytest.fixture
def governed() -> Iterator[Cluster]:
    """Three brokers, and a controller that nobody ends. What a feature's level was can't be undone for the next test."""
    with Cluster(brokers=3, controllers=1, backend=BACKEND) as cluster:
        yield cluster


def fill(cluster: Cluster, topic: str) -> LedgerProducer:
    create(cluster, topic, 1, placed=[[0, 1]], min_insync_replicas="2")
    ledger = LedgerProducer(cluster, topic, count=50)
    ledger.wait_finished()
    return ledger


def lose_both(cluster: Cluster, topic: str) -> None:
    cluster.stop_broker(1)
    wait_for(cluster, lambda view: view.isr(topic)[0] == (0,), "broker 0 alone")
    cluster.kill(0)
    wait_for(cluster, lambda view: view.leaders(topic)[0] is None, "no leader")


def test_elr(governed: Cluster, verdict: Verdict) -> None:
    cluster = governed
    verdict.says("Broker 1 wasn't shut down cleanly yet", WITH, cluster)
    verdict.says("Broker 0 wasn't killed yet", WITH, Told(cluster, ("stop", 1)))
    verdict.says("Broker 0 is up", WITH, Told(cluster, ("stop", 1), ("kill", 0)))
    first = "Broker 0 was killed before broker 1 was shut down cleanly. Which of the two was in the ISR last?"
    swapped = [("kill", 0), ("stop", 1), ("restart", 1)]
    verdict.says(first, WITH, Told(cluster, *swapped))
    verdict.says(first, WITH, Told(cluster, ("stop", 1), ("kill", 0), ("restart", 1), ("restart", 0), *swapped))
    verdict.says(first, WITH, Told(cluster, ("stop", 1), ("restart", 1), *swapped))
    verdict.says("eligible.leader.replicas.version is finalized at level 1, not 0", WITHOUT, cluster)
    safe = fill(cluster, "safe")
    lose_both(cluster, "safe")
    verdict.says("safe has no leader; its ELR is [0, 1]", WITH, cluster)
    verdict.says("Give check() your answer as eligible=", WITH, cluster)
    assert "✓ You read the ELR of safe while both brokers were down" in verdict(WITH, cluster, eligible={0, 1})[1]
    cluster.restart(1)
    wait_for(cluster, lambda view: view.led_by("safe", 1), "broker 1 to lead")
    verdict.passes(WITH, cluster, eligible=[0, 1])
    other_faults = Told(cluster, ("kill", 2), ("restart", 2), ("stop", 1), ("kill", 0))
    verdict.passes(WITH, other_faults, eligible=(1, 0))
    second_try = Told(cluster, *swapped, ("restart", 0), ("stop", 1), ("kill", 0), ("restart", 1))
    verdict.passes(WITH, second_try, eligible={0, 1})
    for known in ([0], [1]):
        verdict.says(f"The ELR wasn't {known}. Look at Elr:", WITH, cluster, eligible=known)
    verdict.says("safe has no replica on broker 2", WITH, cluster, eligible=[0, 1, 2])
    for shown in ("0,1", ["0", "1"], "Elr: 1,0"):
        verdict.passes(WITH, cluster, eligible=shown)
    verdict.passes(WITH, cluster, eligible={"0", "1"})
    verdict.passes(WITH, cluster, eligible=[[0, 1]])  # what a regular expression with two groups finds
    verdict.says("`eligible` should be text or a list, not a whole number", WITH, cluster, eligible=1)
    other = Doctored(cluster, "safe", lambda p: replace(p, leader=0))
    verdict.says("Broker 0 leads safe", WITH, other)
    verdict.says("Not every node is up: 0 is dead", LEDGER, cluster)

    cluster.restart(0)
    wait_for(cluster, lambda view: view.in_sync("safe"), "safe in sync")
    lower = ["downgrade", "--feature", "eligible.leader.replicas.version=0"]
    subprocess.run(["kafka-features.sh", "--bootstrap-server", cluster.bootstrap_servers, *lower], check=True)
    wait_for_level(cluster, "eligible.leader.replicas.version", 0)
    verdict.says("Broker 0 is up", WITHOUT, cluster)
    plain = fill(cluster, "plain")
    lose_both(cluster, "plain")
    verdict.says("Broker 1 is stopped", WITHOUT, cluster)
    cluster.restart(1)
    verdict.passes(WITHOUT, cluster)
    verdict.says("Broker 1 leads plain", WITHOUT, Doctored(cluster, "plain", lambda p: replace(p, leader=1)))
    cluster.restart(0)
    wait_for(cluster, lambda view: view.in_sync("plain"), "plain in sync")
    cluster.kill(1)
    wait_for(cluster, lambda view: view.isr("plain")[0] == (0,), "broker 0 alone")
    cluster.stop_broker(0)
    cluster.restart(1)
    verdict.passes(WITHOUT, cluster)  # whichever of the two was killed, broker 0 left last

    cluster.restart(0)
    wait_for(cluster, lambda view: view.in_sync(["safe", "plain"]), "both in sync")
    verdict.passes(LEDGER, cluster, ledgers={"safe": safe, "plain": plain})
    more = LedgerProducer(cluster, "plain", count=60)
    more.wait_finished()
    verdict.passes(LEDGER, cluster, ledgers={"plain": more, "other": plain, "safe": SimpleNamespace(entries=safe.entries)})
    verdict.says("Give check() your answer as ledgers=", LEDGER, cluster)
    verdict.says("`ledgers` has no 'plain'", LEDGER, cluster, ledgers={"safe": safe})
    lost = SimpleNamespace(entries=[*safe.entries, replace(safe.entries[0], value="never sent")])
    verdict.says("safe has 1 lost write, such as 'never sent'", LEDGER, cluster, ledgers={"safe": lost, "plain": plain})
