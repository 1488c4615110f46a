"""Payments in transactions, a zombie, a hanging transaction: each wrong answer gets its sentence, right ones pass."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing

import kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.admin import AbortTransactionSpec, KafkaAdminClient

from kafkalab import Cluster, wait_until
from support import BACKEND, PATIENCE, Verdict, create, delete, delete_topics, put

pytestmark = pytest.mark.cluster

BOOKING, ISOLATION = "05_transactions", "05_isolation"
ZOMBIE, TIMEOUT, HANGING = "05_zombie", "05_timeout", "05_hanging"
COUNTS = {"read_committed": {"debits": 1, "credits": 1}, "read_uncommitted": {"debits": 2, "credits": 2}}
STATE = "__transaction_state"
ACCOUNTS = {("credits", "100"): "bert", ("debits", "500"): "bert", ("credits", "500"): "carl"}

quiet = logging.getLogger("tests.quiet")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False


def instance(cluster: Cluster, transactional_id: str, **settings: object) -> Producer:
    producer = Producer(cluster.client_config(transactional_id=transactional_id, **settings), logger=quiet)
    producer.init_transactions(60)
    return producer


def write(
    producer: Producer,
    records: Sequence[tuple[str, str]],
    end: str = "commit",
    *,
    reader: Consumer | None = None,
    key: str | None = None,
) -> None:
    """Send values to topics in a transaction, with the position 1 of `reader` if there is one, and end it so."""
    producer.begin_transaction()
    for topic, value in records:
        producer.produce(topic, value, key=key or ACCOUNTS.get((topic, value), "anna"))
    if reader is not None:
        producer.send_offsets_to_transaction([TopicPartition("payments", 0, 1)], reader.consumer_group_metadata())
    assert producer.flush(PATIENCE) == 0
    {"commit": producer.commit_transaction, "abort": producer.abort_transaction, "": lambda: None}[end]()


def both(amount: str) -> list[tuple[str, str]]:
    return [("debits", amount), ("credits", amount)]


@pytest.fixture
def reader(clean: Cluster) -> Iterator[Consumer]:
    with Consumer(clean.client_config(group_id="bank", enable_auto_commit=False)) as consumer:
        yield consumer


def books(cluster: Cluster) -> None:
    """Empty topics."""
    for topic in ("debits", "credits"):
        create(cluster, topic, 1)


def test_transactions(clean: Cluster, reader: Consumer, verdict: Verdict) -> None:
    cluster = clean
    verdict.says("There is no topic 'debits' yet", BOOKING, cluster)
    create(cluster, "payments", 1)
    put(cluster, "payments", [(None, "anna bert 100", 0), (None, "bert carl 500", 0)])
    books(cluster)
    verdict.says("No transaction wrote '100' to debits yet", BOOKING, cluster)
    put(cluster, "debits", [("anna", "100", 0)])
    verdict.says("'100' is in debits, but no transaction wrote it", BOOKING, cluster)
    delete(cluster, "debits")
    create(cluster, "debits", 1)

    bank = instance(cluster, "bank")
    write(bank, both("100"), "")
    verdict.says("The transaction with 100 in debits is still open", BOOKING, cluster)
    bank.commit_transaction()
    verdict.says("There is no consumer group 'bank' yet", BOOKING, cluster)
    put(cluster, "payments", [(None, "not booked", 0)])
    reader.commit(offsets=[TopicPartition("payments", 0, 2)], asynchronous=False)
    verdict.says("has committed offset 2 of payments", BOOKING, cluster)
    reader.commit(offsets=[TopicPartition("payments", 0, 1)], asynchronous=False)
    verdict.says("not by the producer's transaction", BOOKING, cluster)
    write(bank, both("500"))
    verdict.says("In debits, the marker after 500 says commit", BOOKING, cluster)

    for topic in ("debits", "credits"):
        delete(cluster, topic)
    books(cluster)
    write(bank, [("debits", "100")])
    verdict.says("No transaction wrote '100' to credits yet", BOOKING, cluster)
    write(instance(cluster, "another"), [("credits", "100")])
    verdict.says("so no transaction spans both", BOOKING, cluster)

    for topic in ("debits", "credits"):
        delete(cluster, topic)
    books(cluster)
    write(bank, [("debits", "100")])
    write(bank, [("credits", "100")])
    verdict.says("The debit and the credit of 100 are in different transactions", BOOKING, cluster)

    for topic in ("debits", "credits"):
        delete(cluster, topic)
    books(cluster)
    write(bank, [("debits", "100"), ("credits", "100")], key="anna")
    verdict.says("In credits, 100 has the key 'anna'. Whose account", BOOKING, cluster)

    for topic in ("debits", "credits"):
        delete(cluster, topic)
    books(cluster)
    write(bank, both("500"), "abort", reader=reader)  # the other order is right, too
    write(bank, both("100"), reader=reader)
    verdict.passes(BOOKING, cluster)
    verdict.passes(ISOLATION, cluster, counts=COUNTS)
    verdict.says("Give check() your answer as counts=", ISOLATION, cluster)
    one = {"read_committed": {"debits": 1, "credits": 1}}
    verdict.says("`counts` has no 'read_uncommitted'", ISOLATION, cluster, counts=one)
    markers = COUNTS | {"read_uncommitted": {"debits": 4, "credits": 4}}
    verdict.says("does a marker count as a record?", ISOLATION, cluster, counts=markers)
    write(bank, both("100"))
    verdict.says("2 transactions wrote '100' to debits", BOOKING, cluster)
    verdict.says("2 transactions wrote '100' to debits", ISOLATION, cluster, counts=COUNTS)


def test_an_offset_of_an_earlier_attempt_does_not_count(clean: Cluster, reader: Consumer, verdict: Verdict) -> None:
    """It was committed by a transaction of the same transactional id, and therefore of the same producer id."""
    create(clean, "payments", 1)
    put(clean, "payments", [(None, "anna bert 100", 0), (None, "bert carl 500", 0)])
    books(clean)
    write(instance(clean, "bank"), both("100"), reader=reader)
    for topic in ("debits", "credits"):
        delete(clean, topic)
    books(clean)
    bank = instance(clean, "bank")
    write(bank, both("100"))
    write(bank, both("500"), "abort")
    verdict.says("not by the producer's transaction", BOOKING, clean)


def test_zombie(clean: Cluster, verdict: Verdict) -> None:
    cluster = clean
    create(cluster, "fees", 1)
    old = instance(cluster, "old")
    write(old, [("fees", "1")], "")
    verdict.says("No transaction wrote '2' to fees yet", ZOMBIE, cluster, fenced="_FENCED")
    stranger = instance(cluster, "stranger")
    write(stranger, [("fees", "2")], "")
    verdict.says("The transaction with fee 2 is still open", ZOMBIE, cluster, fenced="_FENCED")
    stranger.commit_transaction()
    verdict.says("the coordinator takes them for different applications", ZOMBIE, cluster, fenced="_FENCED")
    old.commit_transaction()

    delete(cluster, "fees")
    create(cluster, "fees", 1)
    write(old, [("fees", "1")])
    write(instance(cluster, "old"), [("fees", "2")])
    verdict.says("Fee 1 is committed: its producer came first", ZOMBIE, cluster, fenced="_FENCED")

    delete(cluster, "fees")
    create(cluster, "fees", 1)
    same = instance(cluster, "old")
    write(same, [("fees", "1")], "abort")
    write(same, [("fees", "2")])
    verdict.says("The same instance wrote both fees", ZOMBIE, cluster, fenced="_FENCED")

    delete(cluster, "fees")
    create(cluster, "fees", 1)
    write(same, [("fees", "1")], "")
    write(instance(cluster, "old"), [("fees", "2")])
    verdict.passes(ZOMBIE, cluster, fenced="_FENCED")
    verdict.passes(ZOMBIE, cluster, fenced="INVALID_PRODUCER_EPOCH")
    verdict.says("`fenced` is still None", ZOMBIE, cluster, fenced=None)
    verdict.says("'_STATE' isn't the name of the error", ZOMBIE, cluster, fenced="_STATE")


def test_zombie_with_a_successor_of_another_library(clean: Cluster, verdict: Verdict) -> None:
    cluster = clean
    create(cluster, "fees", 1)
    old = instance(cluster, "bank")
    write(old, [("fees", "1")], "")
    successor = kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="bank")
    successor.init_transactions()
    successor.begin_transaction()
    successor.send("fees", b"2")
    successor.commit_transaction()
    successor.close()
    with pytest.raises(KafkaException) as told:
        old.commit_transaction(60)
    verdict.passes(ZOMBIE, cluster, fenced=told.value.args[0].name())


@pytest.fixture(scope="module")
def eager() -> Iterator[Cluster]:
    """A broker that looks twice a second for transactions that took too long, as the lab's does."""
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 500}
    with Cluster(brokers=1, settings=often, backend=BACKEND) as cluster:
        yield cluster


def test_timeout(eager: Cluster, verdict: Verdict) -> None:
    def leave(timeout: float, **more: object) -> None:
        """A new topic, and fee 3 in a transaction that may be open for so many seconds."""
        create(eager, "late-fees", 1, 1)
        write(instance(eager, "slow", transaction_timeout_ms=int(1000 * timeout), **more), [("late-fees", "3")], "")

    def wait_for_abort() -> None:
        with closing(eager.disk.log_reader("late-fees")) as reader:
            wait_until(lambda: [b for s in reader.read().segments for b in s.batches if b.control], PATIENCE, "a marker")

    verdict.says("There is no topic 'late-fees' yet", TIMEOUT, eager)
    leave(60)
    verdict.says("The transaction with fee 3 is still open", TIMEOUT, eager)
    delete(eager, "late-fees")

    leave(60)
    instance(eager, "slow")
    verdict.says("before its time was over. Did a successor start", TIMEOUT, eager)
    delete(eager, "late-fees")

    for end, told in (("commit", "Fee 3 is committed"), ("abort", "Its producer aborted the transaction with fee 3")):
        create(eager, "late-fees", 1, 1)
        write(instance(eager, "slow"), [("late-fees", "3")], end)
        verdict.says(told, TIMEOUT, eager)
        delete(eager, "late-fees")

    leave(5)
    wait_for_abort()
    verdict.says("a transaction may take 5000 ms. How many make a second?", TIMEOUT, eager)
    delete(eager, "late-fees")

    leave(1)
    wait_for_abort()
    verdict.passes(TIMEOUT, eager)
    delete(eager, "late-fees")

    create(eager, "late-fees", 1, 1)
    other = kafka.KafkaProducer(
        bootstrap_servers=eager.bootstrap_servers, transactional_id="other", transaction_timeout_ms=1000
    )
    other.init_transactions()
    other.begin_transaction()
    other.send("late-fees", b"3").get(30)
    wait_for_abort()
    verdict.passes(TIMEOUT, eager)
    other.close()


def test_hanging(clean: Cluster, verdict: Verdict) -> None:
    cluster = clean
    admin = AdminClient(cluster.client_config())

    def hang() -> None:
        """Leave fee 4 in a transaction that its coordinator doesn't know."""
        create(cluster, "stuck-fees", 1)
        write(instance(cluster, "lost"), [("stuck-fees", "4")], "")
        delete_topics(cluster, [STATE])
        wait_until(lambda: STATE not in cluster.describe(groups=False, internal=True).topics, PATIENCE, "the state to be gone")
        put(cluster, "stuck-fees", [(None, "5", 0)])

    hang()
    verdict.says("The transaction with fee 4 is still open", HANGING, cluster)
    write(instance(cluster, "lost"), [("stuck-fees", "6")])  # a successor gets another producer id, and can't end it
    verdict.says("The transaction with fee 4 is still open", HANGING, cluster)
    tool = ["kafka-transactions.sh", "--bootstrap-server", cluster.bootstrap_servers]
    subprocess.run([*tool, "abort", "--topic", "stuck-fees", "--partition", "0", "--start-offset", "0"], check=True)
    verdict.passes(HANGING, cluster)
    delete(cluster, "stuck-fees")

    hang()
    partition = kafka.TopicPartition("stuck-fees", 0)
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    [lost] = client.describe_producers([partition])[partition].active_producers
    client.abort_transaction(AbortTransactionSpec(partition, lost.producer_id, lost.producer_epoch, -1))
    client.close()
    verdict.passes(HANGING, cluster)
    write(instance(cluster, "another"), [("stuck-fees", "7")], "")
    verdict.says("The transaction with fee 7 is open", HANGING, cluster)
    end = TopicPartition("stuck-fees", 0, 1)
    admin.delete_records([end])[end].result()
    verdict.says("begins at offset 1 now: you deleted records", HANGING, cluster)
