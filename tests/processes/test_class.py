"""A class on its own cluster: seats that write and read nothing but what they may, and a class that goes away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kafkalab.classroom import membership, presence
from kafkalab.classroom.anonymous import copy_anonymously
from kafkalab.classroom.class_cluster import BYTES_PER_SECOND
from kafkalab.classroom.events import Event, NotAnEvent, decode, encode
from kafkalab.classroom.join_code import read_join_code
from kafkalab.classroom.joining import take_seat
from kafkalab.classroom.link import Link
from kafkalab.classroom.membership import Membership
from kafkalab.classroom.released import NOTHING, Poll, Released
from kafkalab.classroom.spark_login import source_options
from kafkalab.classroom.teaching import Classroom
from kafkalab.classroom.topics import ANONYMOUS, PUBLIC, seat_topic
from kafkalab.cli import main
from kafkalab.cluster import Cluster
from kafkalab.cluster.spec import Listener
from kafkalab.errors import KafkaLabError
from kafkalab.lifeline import marked_processes
from kafkalab.security.config import Security
from kafkalab.waiting import wait_until
from support import PATIENCE

pytestmark = pytest.mark.cluster

VOTE = Event("voted", "02-gap", round=1, option=1)


@pytest.fixture(scope="module")
def classroom() -> Iterator[Classroom]:
    classroom = Classroom()
    classroom.start()
    yield classroom
    run = classroom.cluster.nodes.run
    classroom.stop()
    assert not marked_processes(run.id) and not run.directory.exists()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path))
    return tmp_path / "class"


@pytest.fixture(scope="module")
def seat(classroom: Classroom) -> Membership:
    return take_seat(read_join_code(classroom.code))


@pytest.fixture(scope="module")
def neighbour(classroom: Classroom) -> Membership:
    return take_seat(read_join_code(classroom.code), "brave-otter")


def events(classroom: Classroom, seat: str) -> list[Event]:
    """Return what a seat has sent, as the board reads it."""
    config: dict[str, Any] = {**classroom.cluster.client_config(), "group.id": "test", "enable.auto.commit": False}
    place = TopicPartition(seat_topic(seat), 0, 0)
    with Consumer(config) as consumer:
        consumer.assign([place])
        end = consumer.get_watermark_offsets(place, 10)[1]
        return [decode(record.value(), classroom.schema_id) for record in consumer.consume(end, 30)] if end else []


def refusal(action: Callable[[], object]) -> int:
    with pytest.raises(KafkaException) as refused:
        action()
    return int(refused.value.args[0].code())


def write(seat: Membership, topic: str, value: bytes = b"x") -> None:
    failed: list[KafkaError] = []
    producer = Producer({**seat.client_config(), "message.timeout.ms": 20_000})
    producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error))
    producer.flush(30)
    if failed[0]:
        raise KafkaException(failed[0])


def read(seat: Membership, topic: str) -> bytes:
    with Consumer({**seat.client_config(), "group.id": seat.seat, "enable.auto.commit": False}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        record = wait_until(lambda: consumer.poll(1), PATIENCE, "a record or a refusal")
        if record.error():
            raise KafkaException(record.error())
        return bytes(record.value())


def test_a_seat_writes_its_own_topic_and_reads_what_is_released(
    classroom: Classroom, seat: Membership, neighbour: Membership
) -> None:
    assert Released.from_json(read(seat, PUBLIC)) == NOTHING  # published at the start
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert refusal(partial(read, seat, seat_topic(seat.seat))) == denied
    theirs = AdminClient(seat.client_config()).list_topics(seat_topic(neighbour.seat), 30).topics
    assert [topic.error.code() for topic in theirs.values()] == [denied]  # not even that it's there
    assert seat_topic(neighbour.seat) not in AdminClient(seat.client_config()).list_topics(timeout=30).topics
    for topic in (seat_topic(neighbour.seat), PUBLIC, "board.new-seat", "anything"):
        assert refusal(partial(write, seat, topic)) in (
            denied,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._MSG_TIMED_OUT,
        )
    assert events(classroom, neighbour.seat) == []


def refused(producer: Producer, said: list[KafkaError]) -> bool:
    producer.poll(0.1)
    return any(one.code() == KafkaError._AUTHENTICATION for one in said)


def test_who_has_no_password_of_this_class_is_not_let_in(seat: Membership, neighbour: Membership) -> None:
    for wrong in (replace(seat, password="guessed"), replace(seat, seat=neighbour.seat), replace(seat, seat="instructor")):
        said: list[KafkaError] = []
        producer = Producer({**wrong.client_config(), "error_cb": said.append})
        wait_until(
            partial(refused, producer, said),
            PATIENCE, "a refusal",
        )  # fmt: skip


def test_a_class_that_was_away_gets_each_event_once(classroom: Classroom) -> None:
    mine = take_seat(read_join_code(classroom.code))
    membership.keep(replace(mine, servers="127.0.0.1:1"))  # the network is down
    away = presence.current()
    away.send(VOTE)
    presence.tell_checked("02_failsafe", ["met", "unmet"], 1, 0)
    wait_until(lambda: away.waiting == 2, PATIENCE, "two events in the outbox")
    away.close()  # the kernel ends
    membership.keep(mine)
    back = presence.current()
    back.send(replace(VOTE, round=2))
    wait_until(lambda: back.waiting == 0 and len(events(classroom, mine.seat)) >= 3, PATIENCE, "all three events")
    back.close()
    arrived = sorted((event.kind, event.round) for event in events(classroom, mine.seat))
    assert arrived == [("checked", 0), ("voted", 1), ("voted", 2)]


def knows(link: Link, phase: str) -> bool:
    return link.released.poll == Poll("02-led", phase)


def test_a_vote_is_there_soon_and_a_release_is_known_soon(classroom: Classroom) -> None:
    link = Link(take_seat(read_join_code(classroom.code)))
    try:
        for phase in ("first", "second"):
            classroom.topics.publish(Released(Poll("02-led", phase), frozenset({"02-led"})))
            wait_until(partial(knows, link, phase), PATIENCE, f"the phase {phase}", last_seen=lambda: link.released)
        assert link.holds("02-led") and not link.holds("02-gap") and link.reachable
        link.send(VOTE)
        wait_until(lambda: link.waiting == 0 and link.sent, PATIENCE, "the vote's acknowledgement")
    finally:
        link.close()
    assert not link.reachable and not link.holds("02-led")


def test_a_seat_that_floods_is_slowed_down(classroom: Classroom) -> None:
    mine = take_seat(read_join_code(classroom.code))
    failed: list[KafkaError] = []
    producer = Producer({**mine.client_config(), "batch.size": 4000, "max.in.flight": 1})
    began = time.monotonic()
    # Kafka averages over 11 s, so as much as 11 s allow passes at once: https://kafka.apache.org/documentation/#design_quotas
    size, total = 3000, 15 * BYTES_PER_SECOND
    for _ in range(total // size):
        producer.produce(seat_topic(mine.seat), b"x" * size, on_delivery=lambda error, _: error and failed.append(error))
        producer.poll(0)
    assert producer.flush(PATIENCE) == 0 and not failed
    assert time.monotonic() - began > 2  # without a quota, a tenth of a second
    assert refusal(lambda: write(mine, seat_topic(mine.seat), b"x" * 9000)) == KafkaError.MSG_SIZE_TOO_LARGE
    with pytest.raises(NotAnEvent):
        events(classroom, mine.seat)


def test_a_class_reads_all_its_events_without_their_seats(classroom: Classroom) -> None:
    for number in range(5):
        mine = take_seat(read_join_code(classroom.code))
        producer = Producer({**mine.client_config(), "batch.size": 4000})
        for attempt in range(100):
            checked = Event("checked", "02_failsafe", at=number * 1000 + attempt, met=[1], attempt=attempt)
            producer.produce(seat_topic(mine.seat), encode(checked, classroom.schema_id))
        assert producer.flush(PATIENCE) == 0
    copied = copy_anonymously(classroom.cluster, classroom.schema_id, classroom.seats.taken)
    assert copied >= 500
    row = json.loads(read(mine, ANONYMOUS))
    assert row["seat"] in range(1, len(classroom.seats.taken) + 1) and mine.seat not in json.dumps(row)


def test_a_seat_outlives_a_broker(classroom: Classroom) -> None:
    mine = take_seat(read_join_code(classroom.code))
    membership.keep(mine)
    link = presence.current()
    classroom.cluster.kill(1)
    try:
        for option in range(5):
            link.send(replace(VOTE, option=option, at=option))
        wait_until(lambda: link.waiting == 0, PATIENCE, "acknowledgements of two brokers", last_seen=lambda: link.waiting)
        assert [event.option for event in events(classroom, mine.seat)] == list(range(5))
    finally:
        classroom.cluster.restart(1)
        link.close()


def test_learners_who_share_a_cluster_have_names_of_their_own(
    classroom: Classroom, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    admin = dict(classroom.cluster.client_config("instructor"))
    servers = admin.pop("bootstrap.servers")
    (tmp_path / "admin.json").write_text(json.dumps(admin))
    where = ["--bootstrap-servers", servers, "--client-settings", str(tmp_path / "admin.json")]
    logins = tmp_path / "logins"
    assert main(["tenants", "add", "amber", "amber-2", *where, "--output", str(logins)]) == 0
    assert (logins / "amber.json").stat().st_mode & 0o777 == 0o600

    mine, theirs = (Cluster.attached(**json.loads((logins / f"{name}.json").read_text())) for name in ("amber", "amber-2"))
    request.addfinalizer(mine.start().stop)
    request.addfinalizer(theirs.start().stop)
    assert sorted(mine.describe().brokers) == [0, 1, 2]
    assert sorted(mine.describe().topics) == [ANONYMOUS, PUBLIC]  # which this cluster lets everybody read
    topics = AdminClient(mine.client_config())
    for result in topics.create_topics([NewTopic("amber.orders", 1, 3)]).values():
        result.result()
    producer = Producer(mine.client_config(transactional_id="amber.writer"))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("amber.orders", b"first")
    producer.commit_transaction(30)
    with Consumer(mine.client_config(group_id="amber.readers", auto_offset_reset="earliest")) as consumer:
        consumer.subscribe(["amber.orders"])
        assert wait_until(lambda: consumer.poll(1), PATIENCE, "the record").value() == b"first"
        consumer.commit(asynchronous=False)

    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    for topic in ("orders", "amber-2.orders", "amberorders"):
        [answer] = topics.create_topics([NewTopic(topic, 1, 3)]).values()
        assert refusal(answer.result) == denied
    others = Producer({**theirs.client_config(transactional_id="amber.writer"), "log_level": 0})
    assert refusal(partial(others.init_transactions, 30)) == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert not [name for name in AdminClient(theirs.client_config()).list_topics(timeout=30).topics if "amber" in name]
    with Consumer(theirs.client_config(group_id="amber.readers")) as consumer:
        consumer.subscribe(["amber.orders"])
        said_to_others = wait_until(lambda: consumer.poll(1), PATIENCE, "a refusal")
        assert said_to_others.error().code() in (denied, KafkaError.GROUP_AUTHORIZATION_FAILED)

    assert main(["tenants", "add", "amber", "Not a name", *where]) == 1
    assert "'Not a name' isn't one" in capsys.readouterr().err
    for action in ("add", "remove"):
        assert main(["tenants", action, "instructor", *where, "--output", str(logins)]) == 1
        assert "instructor is the administrator" in capsys.readouterr().err
    for deleted in (1, 0):
        assert main(["tenants", "remove", "amber", *where]) == 0
        assert f"Topics deleted: {deleted}" in capsys.readouterr().out
    said: list[KafkaError] = []
    gone = Producer({**mine.client_config(), "error_cb": said.append})
    wait_until(partial(refused, gone, said), PATIENCE, "a refusal")


@pytest.fixture(scope="module")
def existing() -> Iterator[Cluster]:
    """A cluster that knows nothing of classes, with an administrator."""
    security = Security(users={"admin": "secret"}, mechanisms=("PLAIN", "SCRAM-SHA-512"))
    listeners = [Listener("CLIENTS", "SASL_SSL"), Listener("OPEN")]
    with Cluster(brokers=1, backend="local", listeners=listeners, security=security) as cluster:
        yield cluster


def attached(client: Mapping[str, object], **changes: object) -> Cluster:
    return Cluster.attached(**{name.replace(".", "_"): value for name, value in client.items()} | changes)


def refusal_of(existing: Cluster) -> str:
    """Return why no class begins on a cluster."""
    with pytest.raises(KafkaLabError) as refused:
        Classroom(existing=existing).start()
    assert not existing.nodes.running
    return str(refused.value)


def test_a_class_on_a_cluster_that_runs_already_leaves_nothing_there(existing: Cluster) -> None:
    login = existing.client_config("admin", mechanism="PLAIN")
    classroom = Classroom(existing=attached(login))
    classroom.start()
    link = Link(take_seat(read_join_code(classroom.code)))
    try:
        link.send(VOTE)
        wait_until(lambda: link.waiting == 0, PATIENCE, "the vote's acknowledgement")
        assert events(classroom, link.seat) == [VOTE]
        assert source_options(classroom.cluster, "instructor")["kafka.sasl.mechanism"] == "PLAIN"
        assert "another class runs there" in refusal_of(attached(login))
        assert PUBLIC in existing.describe().topics  # the first class still has it
    finally:
        link.close()
        classroom.stop()
    existing.wait_for(lambda view: not view.topics, "no topic")
    admin: Any = AdminClient(existing.client_config())
    assert admin.describe_user_scram_credentials().result() == {}
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )  # fmt: skip
    assert admin.describe_acls(every).result() == []


def test_a_class_says_why_it_does_not_begin_on_a_cluster(existing: Cluster) -> None:
    login = existing.client_config("admin", mechanism="PLAIN")
    unsuitable = {
        "with these settings: sasl_ssl://": attached(login, sasl_password="guessed"),
        "no broker answers at 127.0.0.1:1": attached(login, bootstrap_servers="127.0.0.1:1"),
        "it may want TLS or a login": attached({"bootstrap.servers": login["bootstrap.servers"]}),
        "has PLAINTEXT. Name one with SASL_SSL": attached({"bootstrap.servers": existing.clients.servers("OPEN")}),
    }
    with ThreadPoolExecutor() as pool:  # each waits some seconds for an answer
        for words, said in zip(unsuitable, pool.map(refusal_of, unsuitable.values()), strict=True):
            assert words in said
    assert not existing.describe().topics
