"""A rolling upgrade and its feature levels: each wrong answer gets its sentence, and right ones pass.

No broker changes its version here: the solution's notebook does that. These clusters say that theirs did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from kafkalab import Cluster, LedgerProducer
from kafkalab.cluster import Fault, Features
from kafkalab.errors import BrokerFailed, DowngradeRefused
from kafkalab.workers import Acknowledgement
from support import Altered, Verdict, create, delete, put

pytestmark = pytest.mark.cluster

BROKERS, LEDGER, LEVELS = "12_upgrade_brokers", "12_upgrade_ledger", "12_upgrade_levels"
OLD, NEW = 29, 30


class Upgraded(Altered):
    """A cluster that says when its brokers were restarted, and which levels of metadata.version they have."""

    def __init__(self, cluster: Cluster, restarts: Mapping[int, float], supported: int = NEW, finalized: int = OLD) -> None:
        levels = Features({"metadata.version": supported}, {"metadata.version": finalized})
        faults = [Fault(at, "restart", broker) for broker, at in restarts.items()]
        features = lambda: dict.fromkeys((0, 1, 2), levels)  # noqa: E731
        super().__init__(cluster, nodes=Altered(cluster.nodes, faults=faults, features=features))


@dataclass
class Ledger:
    """What a check looks at in a `LedgerProducer`."""

    entries: list[Acknowledgement]
    failed: int = 0


@pytest.fixture
def ledger(clean: Cluster) -> Iterator[LedgerProducer]:
    """A ledger of 30 records in payments."""
    create(clean, "payments", 3, min_insync_replicas="2")
    with LedgerProducer(clean, "payments", count=30, rate=1000) as producer:
        producer.wait_finished()
        yield producer


def test_brokers(clean: Cluster, verdict: Verdict, ledger: LedgerProducer) -> None:
    entries = [replace(entry, at=float(second)) for second, entry in enumerate(ledger.entries)]
    ledgers = {"payments": Ledger(entries)}
    one_by_one = {0: 7.5, 1: 14.5, 2: 21.5}

    for lab in (BROKERS, LEDGER):
        verdict.says("Broker 0 was never restarted", lab, Upgraded(clean, {}), ledgers={"payments": ledger})
        verdict.says("Broker 2 was never restarted", lab, Upgraded(clean, {0: 7.5, 1: 14.5}), ledgers=ledgers)
    done = Upgraded(clean, one_by_one)
    verdict.passes(BROKERS, done)  # before the producer stops: who forgot a broker can still upgrade it
    verdict.passes(LEDGER, done, ledgers=ledgers)
    verdict.passes(LEDGER, Upgraded(clean, {2: 3.5, 0: 4.5, 1: 28.5}, finalized=NEW), ledgers=ledgers)
    second_try = Upgraded(clean, one_by_one)
    second_try.nodes.faults[:0] = [Fault(3.5, "restart", broker) for broker in (0, 1, 2)]
    verdict.passes(BROKERS, second_try)
    verdict.passes(LEDGER, second_try, ledgers=ledgers)
    old = Upgraded(clean, one_by_one, supported=OLD)
    verdict.says("The software of broker 0 supports metadata.version up to level 29", BROKERS, old)

    verdict.says("Give check() your answer as ledgers=", LEDGER, done)
    early = Upgraded(clean, {0: -1.0, 1: 14.5, 2: 21.5})
    verdict.says("The ledger has no record from before the first restart", LEDGER, early, ledgers=ledgers)
    late = Upgraded(clean, {0: 7.5, 1: 14.5, 2: 30.0})
    verdict.says("The ledger ends before the last restart", LEDGER, late, ledgers=ledgers)
    at_once = Upgraded(clean, {0: 14.5, 1: 14.5, 2: 14.5})
    verdict.says("The producer wrote nothing between the restarts of brokers 0 and 1", LEDGER, at_once, ledgers=ledgers)
    last_two = Upgraded(clean, {2: 7.5, 1: 14.5, 0: 14.5})
    verdict.says("nothing between the restarts of brokers 1 and 0. Did you wait", LEDGER, last_two, ledgers=ledgers)
    verdict.says("The producer gave 2 records up", LEDGER, done, ledgers={"payments": Ledger(entries, failed=2)})
    lost = Ledger([*entries, replace(entries[0], value="message 31")])
    verdict.says(
        "payments has 1 lost write, such as 'message 31'. Kafka acknowledged the record, and it isn't",
        LEDGER,
        done,
        ledgers={"payments": lost},
    )
    put(clean, "payments", [(None, entries[0].value, 0)])
    verdict.says(f"payments has 1 duplicate, such as '{entries[0].value}'", LEDGER, done, ledgers=ledgers)
    delete(clean, "payments")
    verdict.says("There is no topic 'payments'", LEDGER, done, ledgers=ledgers)


def test_levels(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LEVELS, Upgraded(clean, {}))
    assert "Broker 0 says that level 29 of metadata.version is finalized" in said and "0 of 3" in said
    raised = Upgraded(clean, {}, finalized=NEW)
    verdict.says("Give check() your answer as outcome=", LEVELS, raised)
    verdict.says("`outcome` is 'DowngradeRefused', which is no error", LEVELS, raised, outcome="DowngradeRefused")
    verdict.says("`outcome` is a BrokerFailed. Restart broker 2", LEVELS, raised, outcome=BrokerFailed("it ended"))
    refused = DowngradeRefused("it can't go back")
    verdict.passes(LEVELS, raised, outcome=refused)
    verdict.passes(LEVELS, Upgraded(clean, {}, supported=NEW + 1, finalized=NEW + 1), outcome=refused)
