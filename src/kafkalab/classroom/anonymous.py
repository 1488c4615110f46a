"""Give a class its own events to query, without the seats that sent them."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab.classroom.events import Event, NotAnEvent, decode
from kafkalab.classroom.small_numbers import FEWEST
from kafkalab.classroom.topics import ANONYMOUS, seat_topic
from kafkalab.cluster.offsets import watermarks
from kafkalab.errors import KafkaLabError
from kafkalab.waiting import wait_until

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["anonymous", "copy_anonymously"]

_ROUNDED = 300  # seconds
_SEEN_IN_THE_ROOM = ("help", "done")  # who remembers when a neighbour asked for help would know the neighbour's number
_HISTORY = ("checked", "alive")  # each of them is told, not the last alone
_PATIENCE = 60.0


def anonymous(events: Collection[tuple[str, Event]], chance: random.Random) -> list[dict[str, Any]]:
    """Return events with a number in place of each seat, and times rounded to five minutes, in an order that says nothing.

    Calls for help and *done* are left out: the room has seen them. Of votes and measurements the last one counts.

    Parameters
    ----------
    events
        Seats and their events.
    chance
        Deals the numbers.
    """
    kept: dict[tuple[str, str, str, int, int], Event] = {}
    for seat, event in sorted(events, key=lambda one: one[1].at):
        each = event.at if event.kind in _HISTORY else 0
        kept[seat, event.kind, event.subject, event.round, each] = event
    seats = sorted({seat for seat, _ in events})
    numbers = dict(zip(seats, chance.sample(range(1, len(seats) + 1), len(seats)), strict=True))
    rows = [
        {**asdict(event), "seat": numbers[seat], "at": event.at // 1000 // _ROUNDED * _ROUNDED}
        for (seat, *_), event in kept.items()
        if event.kind not in _SEEN_IN_THE_ROOM
    ]
    chance.shuffle(rows)
    return rows


def copy_anonymously(cluster: Cluster, schema_id: int, seats: Collection[str]) -> int:
    """Copy all seats' events into the topic that the class may read, as JSON. Return how many.

    An earlier copy is deleted first: the new one deals other numbers.

    Raises
    ------
    KafkaLabError
        If fewer than five seats have sent something: then numbers hide nobody.
    WaitTimeout, KafkaException
        If the class's cluster doesn't answer.
    """
    events = [(seat, event) for seat in seats for event in _events(cluster, seat, schema_id)]
    if (told := len({seat for seat, _ in events})) < FEWEST:
        raise KafkaLabError(
            f"only {told} of {len(seats)} seats have sent something: of fewer than {FEWEST}, everybody would know who is who"
        )
    rows = anonymous(events, random.SystemRandom())
    _empty(cluster)
    producer = Producer(cluster.client_config(enable_idempotence=True))
    problems: list[object] = []
    for row in rows:
        producer.produce(ANONYMOUS, json.dumps(row), on_delivery=lambda error, _: problems.append(error))
        producer.poll(0)
    if producer.flush(_PATIENCE) or any(problems):
        why = next(filter(None, problems), "it doesn't answer")
        raise KafkaLabError(f"the class's cluster doesn't take the copy: {why}. Try again")
    return len(rows)


def _empty(cluster: Cluster) -> None:
    admin = AdminClient(cluster.client_config())
    for created in admin.create_topics([NewTopic(ANONYMOUS, 1, -1)]).values():
        try:
            created.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    ends = wait_until(lambda: watermarks(cluster, ANONYMOUS), _PATIENCE, f"the topic {ANONYMOUS}")
    for deleted in admin.delete_records([TopicPartition(ANONYMOUS, p, end) for p, (_, end) in ends.items()]).values():
        deleted.result()


def _events(cluster: Cluster, seat: str, schema_id: int) -> Iterator[Event]:
    topic = seat_topic(seat)
    ends = {partition: end for partition, (first, end) in watermarks(cluster, topic).items() if end > first}
    consumer = Consumer(cluster.client_config(group_id="anonymous", enable_auto_commit=False, auto_offset_reset="earliest"))
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])

        def done() -> bool:
            return all(place.offset >= ends[place.partition] for place in consumer.position(consumer.assignment()))

        while ends and not done():
            record = wait_until(lambda: consumer.poll(0.2), _PATIENCE, f"the next record of {topic}")
            if record is None or record.error() is not None:
                continue
            try:
                yield decode(record.value() or b"", schema_id)
            except NotAnEvent:
                continue
    finally:
        consumer.close()
