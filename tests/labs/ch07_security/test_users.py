"""Users with passwords: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from kafkalab import Cluster, wait_until
from kafkalab.checks.access import CONNECTED, try_connect
from kafkalab.cluster import Listener
from kafkalab.security import Security, login_line
from support import BACKEND, PATIENCE, Verdict, commit, create, put

pytestmark = pytest.mark.cluster

PLAIN, SCRAM = "07_plain", "07_scram"
USERS = {"admin": "kafka-123", "stocks_consumer": "consumer123", "stocks_producer": "producer123"}
NEW = dict.fromkeys(USERS, "kafka123")
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def plain_line(users: dict[str, str]) -> str:
    return login_line("PLAIN", **{f"user_{name}": password for name, password in users.items()})


def make_users(cluster: Cluster, password: str, iterations: int, mechanism: ScramMechanism) -> None:
    admin = AdminClient(cluster.client_config())
    credential = ScramCredentialInfo(mechanism, iterations)
    wanted = [UserScramCredentialUpsertion(user, credential, password.encode()) for user in USERS]
    for made in admin.alter_user_scram_credentials(wanted).values():
        made.result()

    def known() -> bool:
        described: Any = admin.describe_user_scram_credentials(list(USERS))
        infos = [described[user].result().scram_credential_infos for user in USERS]
        return all({i.mechanism: i.iterations for i in of_user}.get(mechanism) == iterations for of_user in infos)

    # The controller has them; the broker, which is asked next, may hear of them a moment later.
    wait_until(known, PATIENCE, f"the users' {mechanism.name} to be known", ignore=(KafkaException,))


def send(cluster: Cluster, count: int) -> None:
    put(cluster, "stock-prices", [(None, str(number), 0) for number in range(count)])


def test_plain_and_scram(verdict: Verdict) -> None:
    """Right but for one answer each; then the broker comes back with wrong settings."""
    login = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "plain.sasl.jaas.config": plain_line(USERS),
        "scram-sha-256.sasl.jaas.config": login_line("SCRAM-SHA-256"),
        "scram-sha-512.sasl.jaas.config": login_line("SCRAM-SHA-512"),
    }
    listeners = [Listener(), Listener("SASL_SSL", "SASL_SSL", settings=login)]
    with Cluster(1, backend=BACKEND, listeners=listeners, security=Security()) as cluster:
        create(cluster, "stock-prices", 1, copies=1)
        passed, printed = verdict(PLAIN, cluster, users=USERS)
        assert not passed
        assert "2 of 4 requirements" in printed
        assert "holds 0 records, not 60" in printed
        assert "Not looked at yet. First: stock-prices holds the 60 prices." in printed
        send(cluster, 60)
        verdict.says("There is no consumer group 'stocks' yet", PLAIN, cluster, users=USERS)
        commit(cluster, "stocks", "stock-prices")
        verdict.passes(PLAIN, cluster, users=USERS)

        verdict.says("Give check() your answer as users=", PLAIN, cluster)
        verdict.says("`users` has no 'stocks_consumer'", PLAIN, cluster, users={"admin": USERS["admin"]})

        verdict.says("The cluster knows no SCRAM user admin", SCRAM, cluster, users=NEW)
        make_users(cluster, "kafka123", 4096, SHA_256)
        verdict.says("admin's credential for SCRAM-SHA-256 has 4096 iterations, not 8192", SCRAM, cluster, users=NEW)
        make_users(cluster, "kafka-123", 8192, SHA_256)
        verdict.says("admin has no credential for SCRAM-SHA-512", SCRAM, cluster, users=NEW)
        make_users(cluster, "kafka123", 4096, SHA_512)
        verdict.says("admin can't log in by SCRAM-SHA-256 with its password: _AUTHENTICATION", SCRAM, cluster, users=NEW)
        make_users(cluster, "kafka123", 8192, SHA_256)
        config = {**cluster.client_config(listener="SASL_SSL"), "sasl.mechanism": "SCRAM-SHA-256", "sasl.password": "kafka123"}
        for user in USERS:
            wait_until(
                lambda u=user: try_connect({**config, "sasl.username": u}) == CONNECTED, PATIENCE, "the password to be known"
            )
        verdict.says("holds 60 records, not 120", SCRAM, cluster, users=NEW)
        send(cluster, 60)
        verdict.says("There is no consumer group 'stocks-again' yet", SCRAM, cluster, users=NEW)
        commit(cluster, "stocks-again", "stock-prices")
        verdict.passes(SCRAM, cluster, users=NEW)

        listener = "listener.name.sasl_ssl."
        cluster.restart(0, settings={f"{listener}plain.sasl.jaas.config": plain_line({**USERS, "admin": "kafka123"})})
        verdict.says("admin can't log in by PLAIN with its password: _AUTHENTICATION", PLAIN, cluster, users=USERS)
        cluster.restart(0, settings={f"{listener}sasl.enabled.mechanisms": "SCRAM-SHA-256"})
        verdict.says("Does the listener accept the mechanism", PLAIN, cluster, users=USERS)


def test_a_cluster_without_the_listener(clean: Cluster, verdict: Verdict) -> None:
    verdict.says("no listener named SASL_SSL", PLAIN, clean, users=USERS)
