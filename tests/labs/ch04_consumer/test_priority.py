"""Priorities among partitions: each wrong answer gets its sentence, and the right ones pass."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import numpy
import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from kafkalab import Cluster
from kafkalab.distribution import put_tools_on_path
from support import Place, Verdict, commit, create, members, put

pytestmark = pytest.mark.cluster

# -- 04_priority ----------------------------------------------------------------------------------------------------

PRICES, READERS, FIRST = "stock-prices", "partition-readers", "important-first"
OTHERS = [("SUN", "a price", 0), ("ABC", "a price", 1), ("XYZ", "a price", 2), ("DEF", "a price", 3)]
IMPORTANT = [("IBM", "a price", 4), ("UBER", "a price", 4)]
ENDS = dict.fromkeys(range(4), 10) | {4: 20}


def test_priority(clean: Cluster, verdict: Verdict) -> None:
    create(clean, PRICES, 5)
    places = put(clean, PRICES, [*OTHERS, *IMPORTANT] * 10)
    right = {"readers": [*range(5)], "read": places, "at_once": dict.fromkeys(range(4), 1) | {4: 2}}
    verdict.says("There is no consumer group 'partition-readers'", "04_priority", clean, **right)
    commit(clean, READERS, PRICES, ENDS)
    verdict.passes("04_priority", clean, **right)
    for says, wrong in {
        "`readers` is empty": {"readers": []},
        "`read` is empty": {"read": []},
        "4 readers for 5 partitions": {"readers": [*range(4)]},
        "did not read offset 0 of partition 2 (10 of 60 are missing)": {"read": [place for place in places if place[0] != 2]},
        "read offset 3 of partition 2 more than once": {"read": [*places, (2, 3)]},  # a reader was assigned more than its own
        "No two prices of the last partition were processed at once": {"at_once": dict.fromkeys(range(5), 1)},
        "Partition 0 had 2 workers at once": {"at_once": dict.fromkeys(range(5), 2)},
        "so two prices of the same stock were, and their order is left to chance": {"at_once": {**right["at_once"], 4: 4}},
    }.items():
        verdict.says(says, "04_priority", clean, **{**right, **wrong})
    commit(clean, READERS, PRICES, {4: 19})  # the last one read instead of the next one
    verdict.says("partition-readers has committed offset 19 in partition 4", "04_priority", clean, **right)
    put(clean, PRICES, [("SUN", "a price", 4)])
    verdict.says("The last partition holds IBM, SUN, UBER", "04_priority", clean, **right)


def test_priority_by_subscription(clean: Cluster, verdict: Verdict) -> None:
    create(clean, PRICES, 5)
    put(clean, PRICES, [*OTHERS, *IMPORTANT])
    commit(clean, READERS, PRICES, {0: 1})
    with members(clean, PRICES, READERS, 1):
        answers = {"readers": [*range(5)], "read": [(0, 0)], "at_once": {4: 2}}
        verdict.says("has 1 member. Who assigns the partitions here?", "04_priority", clean, **answers)


# -- 04_pause -------------------------------------------------------------------------------------------------------


def test_pause(clean: Cluster, verdict: Verdict) -> None:
    create(clean, PRICES, 5)
    places = put(clean, PRICES, [*OTHERS, *IMPORTANT] * 10)
    commit(clean, FIRST, PRICES, ENDS)
    late = 12  # 12 wait at the beginning, 8 are sent in the middle
    others = [place for place in places if place[0] != 4]
    first, then = [(4, offset) for offset in range(12)], [(4, offset) for offset in range(12, 20)]
    still, later = [0, 0, 0, 0], [5, 5, 5, 5]
    right = {"handled": [*first, *others[:20], *then, *others[20:]], "late": late, "positions": [still] * 12 + [later] * 8}
    verdict.passes("04_pause", clean, **right)
    verdict.passes("04_pause", clean, **{**right, "positions": numpy.array(right["positions"])})
    mixed = [place for pair in zip(then, others[20:28], strict=True) for place in pair]
    for says, wrong in {
        "`handled` is empty": {"handled": []},
        "you handled 0 of them before another one": {"handled": [*others, *first, *then]},  # by number of partition
        "Others were handled between the important prices": {  # paused once
            "handled": [*first, *others[:20], *mixed, *others[28:]]
        },
        "handled last, after all the others": {"handled": [*first, *others, *then]},  # looks only when it is their turn
        "read offset 0 of partition 0 more than once (10 duplicates in all)": {
            "handled": [*first, *others[:20], *then, *others[:10], *others[20:]]
        },  # resumed, and sent back
        "None of the important prices that were sent in the middle": {"handled": [*first, *others]},
        "did not read offset 5 of partition 0 (20 of 60 are missing)": {
            "handled": [*first, *[p for p in others if p[1] < 5], *then]
        },  # never resumed, the second time
        "changed between two important prices": {"positions": [still] * 11 + [later] * 9},
        "`positions` has 1 of the 20 entries that it should have": {"positions": [[0]]},
        "holds 1 position. How many other partitions": {"positions": [[0]] * 20},
        "`positions` is empty": {"positions": []},
    }.items():
        verdict.says(says, "04_pause", clean, **{**right, **wrong})
    commit(clean, FIRST, PRICES, {0: 3})
    verdict.says("important-first has committed offset 3 in partition 0", "04_pause", clean, **right)


# -- 04_pause: another right answer ---------------------------------------------------------------------------------


def read_by_the_watermark(consumer: Consumer, topic: str, handle: Callable[[Message], bool]) -> None:
    """Assign and pause at once, and resume whenever the important partition is read up to the watermark."""
    others, important = [TopicPartition(topic, p) for p in range(4)], TopicPartition(topic, 4)
    consumer.assign([*others, important])
    consumer.pause(others)
    paused, following, going_on, give_up = True, 0, True, time.monotonic() + 60
    while going_on and time.monotonic() < give_up:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            following = message.offset() + 1 if message.partition() == 4 else following
            going_on = handle(message)
            consumer.store_offsets(message)
        end = consumer.get_watermark_offsets(important, cached=True)[1]
        if paused and 0 < end <= following:
            consumer.resume(others)
            paused = False
        elif not paused and end > following:
            consumer.pause(others)
            paused = True


def handled_in_a_trial(cluster: Cluster, topic: str) -> list[Place]:
    """As in the lab: 40 important prices wait among 120 in all, and 20 more come in the middle."""
    handled: list[Place] = []
    slowly = threading.Event()

    def handle(record: Message) -> bool:
        handled.append((record.partition(), record.offset()))
        if len(handled) == 70:
            put(cluster, topic, IMPORTANT * 10)
        if len(handled) >= 70 and len([p for p, _ in handled if p == 4]) == 40:
            slowly.wait(0.01)  # the others take their time, so that there are some left when the important ones come
        return len(set(handled)) < 140

    settings = {"enable_partition_eof": True, "enable_auto_offset_store": False, "auto_offset_reset": "earliest"}
    with Consumer(cluster.client_config(group_id=FIRST, **settings)) as consumer:
        read_by_the_watermark(consumer, topic, handle)
    return handled


def test_pausing_right_after_assigning_reads_nothing_twice(clean: Cluster) -> None:
    """With the offsets that the lab gives the group. Without them, partitions started over in four trials of ten."""
    put_tools_on_path()
    notebook = nbformat.read(Path(__file__).parents[3] / "solutions/04_consumer/04_priority.ipynb", as_version=4)
    [given] = [cell.source for cell in notebook.cells if cell.cell_type == "code" and "--reset-offsets" in cell.source]
    arguments = given[given.index("--reset-offsets") : given.index("|")].split()
    topics = [f"{PRICES}-{turn}" for turn in range(4)]
    for topic in topics:
        create(clean, topic, 5)
        put(clean, topic, [*OTHERS, *IMPORTANT] * 20, linger_ms=100)
    target = ["--bootstrap-server", clean.bootstrap_servers, "--group", FIRST, *(f"--topic={topic}" for topic in topics)]
    # The tool gives up after 5 s by default; on a busy machine a group's coordinator may take longer to be found.
    patient = ["--timeout", "60000"]
    subprocess.run(["kafka-consumer-groups.sh", *target, *arguments, *patient], check=True, capture_output=True)
    for topic in topics:
        handled = handled_in_a_trial(clean, topic)
        assert len(set(handled)) == len(handled) == 140
