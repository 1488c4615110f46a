"""Retries, and epochs of transactions: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import subprocess

import pytest
from confluent_kafka import Producer

from kafkalab import Cluster
from kafkalab.checks import CheckContext
from kafkalab.checks.transactions import log_of, transactions
from support import PATIENCE, Verdict, create, delete, put

pytestmark = pytest.mark.cluster

RETRY, EPOCHS = "05_idempotence", "05_epochs"
ORDERS = ("order 1", "order 2", "order 3")
RIGHT = {"expected": 3, "unknown": -1}


def orders(cluster: Cluster, topic: str, *values: str, **settings: object) -> None:
    """Send orders one by one with one producer."""
    producer = Producer(cluster.client_config(**settings))
    for value in values:
        producer.produce(topic, value, partition=0)
        assert producer.flush(PATIENCE) == 0


def again(cluster: Cluster, topic: str) -> None:
    """The topic, empty."""
    if topic in cluster.describe(groups=False).topics:
        delete(cluster, topic)
    create(cluster, topic, 1)


def test_idempotence(breakable: Cluster, verdict: Verdict) -> None:
    cluster = breakable
    verdict.says("There is no topic 'plain' yet", RETRY, cluster)
    again(cluster, "plain")
    again(cluster, "numbered")
    verdict.says("The topic plain is empty", RETRY, cluster)

    orders(cluster, "plain", *ORDERS)
    verdict.says("plain holds order 2 once. No follower was frozen so far", RETRY, cluster)
    again(cluster, "plain")
    orders(cluster, "plain", *ORDERS, enable_idempotence=True)
    verdict.says("Its producer should have no idempotence", RETRY, cluster)
    again(cluster, "plain")
    orders(cluster, "plain", "order 1", "order 2", "order 2", "order 3")  # what a retry leaves in the log

    orders(cluster, "numbered", *ORDERS)
    verdict.says("gives a producer one? Correct the cell that sends them, and run it again", RETRY, cluster)
    again(cluster, "numbered")
    orders(cluster, "numbered", *ORDERS, enable_idempotence=True)
    verdict.says("numbered holds order 3 only once. Has the restarted application", RETRY, cluster, **RIGHT)
    orders(cluster, "numbered", "order 3", enable_idempotence=True)
    verdict.passes(RETRY, cluster, **RIGHT)
    verdict.passes(RETRY, cluster, expected="3", unknown="-1")  # as the dump shows them
    verdict.says("`expected` is still None", RETRY, cluster, expected=None)
    verdict.says("doesn't expect sequence 2 next", RETRY, cluster, **(RIGHT | {"expected": 2}))
    verdict.says("`unknown` is 0", RETRY, cluster, **(RIGHT | {"unknown": 0}))

    again(cluster, "numbered")
    orders(cluster, "numbered", *ORDERS, "order 3", enable_idempotence=True)
    verdict.says("All copies of order 3 are from producer id", RETRY, cluster, expected=4, unknown=-1)
    orders(cluster, "numbered", "order 3")
    verdict.says("numbered has a copy of order 3 without a producer id", RETRY, cluster, expected=4, unknown=-1)
    again(cluster, "numbered")
    put(cluster, "numbered", [(None, value, 0) for value in ORDERS], enable_idempotence=True)  # all three in one batch
    put(cluster, "numbered", [(None, "order 3", 0)], enable_idempotence=True)
    verdict.passes(RETRY, cluster, **RIGHT)


def commit(cluster: Cluster, topic: str, transactional_id: str, *, number: int = 3, instances: int = 1) -> None:
    """Commit so many transactions of a record each, with so many instances in turn."""
    for _ in range(instances):
        producer = Producer(cluster.client_config(transactional_id=transactional_id))
        producer.init_transactions(60)
        for value in range(number // instances):
            producer.begin_transaction()
            producer.produce(topic, f"record {value}", partition=0)
            producer.commit_transaction()


def test_epochs(clean: Cluster, verdict: Verdict) -> None:
    cluster = clean
    verdict.says("There is no topic 'by-java' yet", EPOCHS, cluster)
    for topic in ("by-java", "by-librdkafka"):
        create(cluster, topic, 1)
    commit(cluster, "by-java", "hasty", number=1)
    too_few = "by-java has 1 transaction so far, and should have 2 or more. Its cell may run again"
    verdict.says(too_few, EPOCHS, cluster)
    again(cluster, "by-java")
    tool = ["kafka-producer-perf-test.sh", "--bootstrap-server", cluster.bootstrap_servers, "--topic", "by-java"]
    load = ["--num-records", "6", "--record-size", "10", "--throughput", "5"]
    subprocess.run([*tool, *load, "--transactional-id", "java", "--transaction-duration-ms", "1"], check=True)
    verdict.says("by-librdkafka has 0 transactions so far", EPOCHS, cluster)
    commit(cluster, "by-librdkafka", "many", instances=3)
    verdict.says("by-librdkafka has records of 3 epochs", EPOCHS, cluster)
    again(cluster, "by-librdkafka")
    commit(cluster, "by-librdkafka", "one")

    ctx = CheckContext(cluster)
    batches = [batch.producer_epoch for batch in log_of(ctx, "by-java") if not batch.control]
    rising = [transaction.epoch for transaction in transactions(ctx, "by-java")]
    assert rising == sorted(set(rising)) and len(rising) > 1, "Java's producer has a higher epoch in each transaction"
    [epoch] = {transaction.epoch for transaction in transactions(ctx, "by-librdkafka")}
    verdict.passes(EPOCHS, cluster, epochs={"by-java": batches, "by-librdkafka": [epoch] * 3})
    verdict.passes(EPOCHS, cluster, epochs={"by-java": tuple(rising), "by-librdkafka": [epoch] * 3})
    as_shown = {"by-java": [str(epoch) for epoch in batches], "by-librdkafka": f"{epoch},{epoch},{epoch}"}
    verdict.passes(EPOCHS, cluster, epochs=as_shown)
    verdict.says("`epochs` has no 'by-librdkafka'", EPOCHS, cluster, epochs={"by-java": batches})
    markers = [batch.producer_epoch for batch in log_of(ctx, "by-java")]
    verdict.says("leave the markers out", EPOCHS, cluster, epochs={"by-java": markers, "by-librdkafka": [epoch] * 3})

    commit(cluster, "by-librdkafka", "another")
    verdict.says("has records of 2 producer ids", EPOCHS, cluster)
