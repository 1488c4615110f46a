"""Seven messages in thirteen partitions: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from confluent_kafka import Consumer

from kafkalab import Cluster
from support import PATIENCE, Verdict, commit, create, put, send

pytestmark = pytest.mark.cluster

LAB, TOPIC = "01_my_topic", "my-topic"
SEVEN = [f"This is message {n}" for n in (1, 2, 3)] + [f"Message {n}" for n in (4, 5, 6, 7)]


def read(cluster: Cluster) -> dict[str, tuple[int, int]]:
    """Read and commit as the lab's group; where each value is."""
    consumer = Consumer(cluster.client_config(group_id="my-readers", auto_offset_reset="earliest", enable_auto_commit=False))
    consumer.subscribe([TOPIC])
    records = consumer.consume(7, timeout=PATIENCE)
    consumer.commit(asynchronous=False)
    consumer.close()
    return {r.value().decode(): (r.partition(), r.offset()) for r in records}


def test_right_and_right_but_for_the_places(single: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, single, where={})
    assert "There is no topic 'my-topic' yet" in said and "0 of 5" in said
    create(single, TOPIC, 13, 1)
    send(single, TOPIC, SEVEN)
    where = read(single)
    verdict.passes(LAB, single, where=where)
    in_other_types = {value.encode(): [np.int64(place[0]), place[1]] for value, place in where.items()}
    verdict.passes(LAB, single, where=in_other_types)
    verdict.says("`where` is empty", LAB, single, where={})
    verdict.says("`where` should be a dictionary, not a list", LAB, single, where=list(where))
    verdict.says("`where` lacks 'Message 4'", LAB, single, where={k: v for k, v in where.items() if k != "Message 4"})
    swapped = {value: (offset, partition + 1) for value, (partition, offset) in where.items()}
    verdict.says("7 messages can't be found at the place you give", LAB, single, where=swapped)


def with_one_partition(cluster: Cluster) -> None:
    create(cluster, TOPIC, 1, 1)


def all_at_once(cluster: Cluster) -> None:
    create(cluster, TOPIC, 13, 1)
    put(cluster, TOPIC, [(None, value, 4) for value in SEVEN])


def one_missing(cluster: Cluster) -> None:
    create(cluster, TOPIC, 13, 1)
    send(cluster, TOPIC, SEVEN[:6])


def sent_twice(cluster: Cluster) -> None:
    create(cluster, TOPIC, 13, 1)
    send(cluster, TOPIC, SEVEN * 2)


def one_too_many(cluster: Cluster) -> None:
    create(cluster, TOPIC, 13, 1)
    send(cluster, TOPIC, [*SEVEN, "Message 8"])


def read_by_nobody(cluster: Cluster) -> None:
    create(cluster, TOPIC, 13, 1)
    send(cluster, TOPIC, SEVEN)


def read_without_enough_time(cluster: Cluster) -> None:
    read_by_nobody(cluster)
    command = ["kafka-console-consumer.sh", "--bootstrap-server", cluster.bootstrap_servers, "--topic", TOPIC]
    command += ["--group", "my-readers", "--from-beginning", "--max-messages", "7", "--timeout-ms", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Processed a total of 0 messages" in done.stderr  # forming the group counts


def read_by_another_group(cluster: Cluster) -> None:
    read_by_nobody(cluster)
    commit(cluster, "others", TOPIC)


def read_in_part(cluster: Cluster) -> None:
    create(cluster, TOPIC, 13, 1)
    put(cluster, TOPIC, [(None, value, 3) for value in SEVEN[:4]])
    commit(cluster, "my-readers", TOPIC)
    put(cluster, TOPIC, [(None, value, 3) for value in SEVEN[4:]])


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (with_one_partition, "my-topic has 1 partition. How many does the text ask for?"),
        (all_at_once, "They are all in one partition"),
        (one_missing, "'Message 7' isn't in my-topic"),
        (sent_twice, "'This is message 1' is in my-topic 2 times"),
        (one_too_many, "my-topic also holds 'Message 8'"),
        (read_by_nobody, "There is no consumer group 'my-readers' yet"),
        (read_without_enough_time, "my-readers"),  # Kafka doesn't know it, or it has committed nothing
        (read_by_another_group, "The cluster's groups: others"),
        (read_in_part, "my-readers has committed offset 4 in partition 3 of my-topic, which ends at offset 7"),
    ],
)
def test_wrong(single: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(single)
    verdict.says(sentence, LAB, single, where={})
