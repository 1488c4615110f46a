"""Quotas: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest, AlterClientQuotasResponse

from kafkalab import Cluster, wait_until
from kafkalab.checks.context import CheckContext
from kafkalab.checks.quotas import CLIENT_ID, USER, quotas_of
from kafkalab.cluster.wire import BrokerConnection
from support import BACKEND, PATIENCE, Verdict, create, delete, put

pytestmark = pytest.mark.cluster

RATES, SHARES, PAIR = "05_quotas", "05_request_quota", "05_quota_pair"
RIGHT: dict[str, dict[str, float]] = {
    "rates": {"other": 3e6, "loader": 199_000.0, "reader": 150_000},
    "throttled": {"loader": 1160, "reader": 1000},
}


def quota(cluster: Cluster, entity: dict[str, str], change: str) -> None:
    """Set a quota, or remove it, as ``kafka-configs.sh`` does, and wait until the broker knows."""
    setting, _, value = change.partition("=")
    entry = AlterClientQuotasRequest.EntryData
    whose = [entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    op = entry.OpData(key=setting, value=float(value or 0), remove=not value)
    request = AlterClientQuotasRequest(entries=[entry(entity=whose, ops=[op])], validate_only=False, version=1)
    with closing(BrokerConnection(cluster.clients.bootstrap(0), timeout=10)) as connection:
        [answer] = connection.ask(request, AlterClientQuotasResponse, 1).entries
    assert answer.error_code == 0, answer
    asking = CheckContext(cluster)
    wait_until(lambda: quotas_of(asking, entity).get(setting) == (float(value) if value else None), PATIENCE, change)


def load_a_megabyte(cluster: Cluster, topic: str, producers: int = 1, **settings: object) -> None:
    """Fill an empty topic, whose records have the broker's timestamps; several producers share a client id's quota."""
    create(cluster, topic, 1, 1, message_timestamp_type="LogAppendTime")
    for _ in range(producers):
        put(cluster, topic, [(None, bytes(1000), 0)] * (1000 // producers), batch_size=16_384, **settings)


@pytest.fixture(scope="module")
def impatient() -> Iterator[Cluster]:
    """One broker whose quotas judge by two seconds. No test cares about the quotas of another one."""
    with Cluster(brokers=1, settings={"quota.window.num": 2}, backend=BACKEND) as cluster:
        yield cluster


def test_quotas(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    verdict.says("The cluster knows no producer_byte_rate for the client id loader", RATES, cluster, **RIGHT)
    quota(cluster, {CLIENT_ID: "loader"}, "consumer_byte_rate=200000")
    verdict.says("loader. It has consumer_byte_rate", RATES, cluster, **RIGHT)
    quota(cluster, {CLIENT_ID: "loader"}, "consumer_byte_rate")
    quota(cluster, {USER: "loader"}, "producer_byte_rate=200000")
    verdict.says("The cluster knows no producer_byte_rate for the client id loader", RATES, cluster, **RIGHT)
    quota(cluster, {USER: "loader"}, "producer_byte_rate")
    quota(cluster, {CLIENT_ID: "loader"}, "producer_byte_rate=200")
    verdict.says("The producer_byte_rate of the client id loader is 200.", RATES, cluster, **RIGHT)
    quota(cluster, {CLIENT_ID: "loader"}, "producer_byte_rate=200000")
    verdict.says("The cluster knows no consumer_byte_rate for the client id reader", RATES, cluster, **RIGHT)
    quota(cluster, {CLIENT_ID: "reader"}, "consumer_byte_rate=200000")
    verdict.says("There is no topic 'limited' yet", RATES, cluster, **RIGHT)

    create(cluster, "limited", 1, 1)
    put(cluster, "limited", [(None, bytes(1000), 0)])
    verdict.says("have their producer's timestamps", RATES, cluster, **RIGHT)
    delete(cluster, "limited")
    create(cluster, "limited", 1, 1, message_timestamp_type="LogAppendTime")
    put(cluster, "limited", [(None, bytes(1000), 0)])
    verdict.says("limited holds 1000 bytes. Load a megabyte", RATES, cluster, **RIGHT)
    delete(cluster, "limited")  # its first record is old by now
    create(cluster, "limited", 1, 1, message_timestamp_type="LogAppendTime")
    put(cluster, "limited", [(None, bytes(1000), 0)] * 900, client_id="somebody")
    verdict.says("Which client id did its producer have", RATES, cluster, **RIGHT)
    delete(cluster, "limited")
    load_a_megabyte(cluster, "limited", producers=2, client_id="loader")
    verdict.passes(RATES, cluster, **RIGHT)
    in_whole_numbers = {"rates": {"loader": 198_000, "reader": 1}, "throttled": {"loader": 0.5, "reader": 7.0}}
    verdict.passes(RATES, cluster, **in_whole_numbers)

    def refused(sentence: str, name: str, **wrong: object) -> None:
        verdict.says(sentence, RATES, cluster, **(RIGHT | {name: RIGHT[name] | wrong}))

    refused("`rates` says that reader made 2000 kB/s", "rates", reader=2_000_000)
    refused("`throttled` says that loader was never held back", "throttled", loader=0)
    verdict.says("`rates` has no 'reader'", RATES, cluster, **(RIGHT | {"rates": {"loader": 1.0}}))
    verdict.says("`throttled` has no 'loader'", RATES, cluster, **(RIGHT | {"throttled": {"reader": 1.0}}))


def test_request_quota(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    verdict.says("knows no request_percentage for the client id chatty", SHARES, cluster)
    quota(cluster, {CLIENT_ID: "chatty"}, "request_percentage=50")
    verdict.says("The request_percentage of the client id chatty is 50", SHARES, cluster)
    quota(cluster, {CLIENT_ID: "chatty"}, "request_percentage=5")
    verdict.says("Give check() your answer as throttled=", SHARES, cluster)
    verdict.says("`throttled` has no 'chatty'", SHARES, cluster, throttled={"loader": 1160})
    verdict.says("`throttled` says that chatty was never held back", SHARES, cluster, throttled={"chatty": 0})
    throttled = {"chatty": 34}
    quota(cluster, {CLIENT_ID: "ANONYMOUS"}, "producer_byte_rate=400000")
    verdict.says("knows no producer_byte_rate for the user ANONYMOUS", SHARES, cluster, throttled=throttled)

    create(cluster, "by-user", 1, 1, message_timestamp_type="LogAppendTime")
    put(cluster, "by-user", [(None, bytes(1000), 0)] * 900, client_id="somebody")  # in large batches: at once
    quota(cluster, {USER: "ANONYMOUS"}, "producer_byte_rate=400000")
    verdict.says("by-user was written at", SHARES, cluster, throttled=throttled)
    verdict.says("Was the user's quota there before?", SHARES, cluster, throttled=throttled)
    delete(cluster, "by-user")
    verdict.says("There is no topic 'by-user' yet", SHARES, cluster, throttled=throttled)
    load_a_megabyte(cluster, "by-user", client_id="loader")
    verdict.says("Give check() your answer as counts=", SHARES, cluster, throttled=throttled)
    verdict.says("200000 isn't it", SHARES, cluster, throttled=throttled, counts=200_000)
    verdict.says("600000 isn't it", SHARES, cluster, throttled=throttled, counts=600_000.0)
    verdict.passes(SHARES, cluster, throttled=throttled, counts=400_000)
    delete(cluster, "by-user")
    load_a_megabyte(cluster, "by-user", producers=2, client_id="loader")
    verdict.passes(SHARES, cluster, throttled={"chatty": 0.5, "loader": 7.0}, counts=4e5)


def test_quota_pair(impatient: Cluster, verdict: Verdict) -> None:
    cluster = impatient
    both = {USER: "ANONYMOUS", CLIENT_ID: "loader"}
    verdict.says("no producer_byte_rate for the user ANONYMOUS with the client id loader", PAIR, cluster)
    quota(cluster, both, "producer_byte_rate=200000")
    verdict.says("of the user ANONYMOUS with the client id loader is 200000", PAIR, cluster)
    quota(cluster, both, "producer_byte_rate=2000000")
    verdict.says("Give check() your answer as counts=", PAIR, cluster)
    verdict.says("200000 isn't it", PAIR, cluster, counts=200_000)
    verdict.says("400000 isn't it", PAIR, cluster, counts=400_000)
    verdict.passes(PAIR, cluster, counts=2_000_000)
    verdict.passes(PAIR, cluster, counts=2e6)
