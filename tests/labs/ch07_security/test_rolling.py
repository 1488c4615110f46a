"""From PLAIN to SCRAM: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from kafkalab import Cluster
from kafkalab.cluster import Listener
from kafkalab.security import Security, login_line
from kafkalab.workers import Acknowledgement, LedgerProducer
from support import BACKEND, Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "07_rolling"
OLD, NEW = "PLAIN", "SCRAM-SHA-256"


class Ledger(LedgerProducer):
    """A ledger that was written by hand."""

    def __init__(self, name: str, entries: Sequence[Acknowledgement], failures: Mapping[str, int] | None = None) -> None:
        self.name, self._written, self._failures = name, list(entries), dict(failures or {})

    @property
    def entries(self) -> list[Acknowledgement]:
        """As given."""
        return self._written

    @property
    def acknowledged(self) -> int:
        """How many were given."""
        return len(self._written)


def written(cluster: Cluster, name: str) -> Ledger:
    places = put(cluster, "stock-prices", [(name, "message 1", 0)] * 5)
    return Ledger(name, [Acknowledgement(1, "message 1", name, p, offset, 0.0, 0.0) for p, offset in places])


def test_rolling(verdict: Verdict) -> None:
    security = Security({"stocks_producer": "secret"}, mechanisms=(OLD,), between_brokers=OLD, authorizer=False)
    with Cluster(1, backend=BACKEND, listeners=[Listener("SASL_SSL", "SASL_SSL")], security=security) as cluster:
        create(cluster, "stock-prices", 1, copies=1)
        old, new = written(cluster, "old"), written(cluster, "new")
        right = {"writers": [old, new], "knocks": [(OLD, True), (NEW, True)]}
        passed, printed = verdict(LAB, cluster, **right)
        assert not passed
        assert "Broker 0 logs in to other brokers by PLAIN" in printed
        assert "stocks_producer can't log in to broker 0 by SCRAM-SHA-256" in printed
        assert "Not looked at yet. First: Clients log in by SCRAM-SHA-256." in printed

        admin = AdminClient(cluster.client_config())
        people = {"stocks_producer": "secret", "broker": cluster.security.broker_password}
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        wanted = [UserScramCredentialUpsertion(name, credential, password.encode()) for name, password in people.items()]
        for made in admin.alter_user_scram_credentials(wanted).values():
            made.result()
        both, settings = {}, {"sasl.mechanism.inter.broker.protocol": NEW}
        for listener, line in (("sasl_ssl", login_line(NEW)), ("internal", cluster.security.broker_login(NEW))):
            both[f"listener.name.{listener}.sasl.enabled.mechanisms"] = f"{OLD},{NEW}"
            both[f"listener.name.{listener}.scram-sha-256.sasl.jaas.config"] = line
            settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = NEW
        cluster.restart(0, settings=both)
        verdict.says("Broker 0 still accepts PLAIN", LAB, cluster, **right)
        cluster.restart(0, settings=settings)
        verdict.passes(LAB, cluster, **right)
        verdict.passes(LAB, cluster, writers=(old, new), knocks=[[OLD, True], [NEW, True]])
        lost = Ledger("old", [Acknowledgement(9, "message 9", "old", 0, 99, 0.0, 0.0)])
        for sentence, wrong in {
            "`writers` is empty": {"writers": []},
            "There is only one writer": {"writers": [old]},
            "No message of the writer new was acknowledged": {"writers": [old, Ledger("new", [])]},
            "1 message of the writer new failed": {"writers": [old, Ledger("new", new.entries, {"_MSG_TIMED_OUT": 1})]},
            "stock-prices has 1 lost write of the writer old, such as 'message 9'": {"writers": [lost, new]},
            "`knocks` is empty": {"knocks": []},
            "1 client couldn't log in, the first one by PLAIN": {"knocks": [(OLD, False), (NEW, True)]},
            "Clients tried one mechanism only": {"knocks": [(OLD, True)]},
        }.items():
            verdict.says(sentence, LAB, cluster, **{**right, **wrong})
