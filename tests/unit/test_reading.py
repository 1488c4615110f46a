"""What a consumer still has to commit, and what it tells of commits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from confluent_kafka import KafkaError, TopicPartition

from kafkalab.workers.channel import Channel
from kafkalab.workers.consumer import Reading, Record
from kafkalab.workers.consumer_process import _Commits

FIRST, SECOND = ("t", 0), ("t", 1)


def record(partition: int, offset: int) -> Record:
    return Record("t", partition, offset, None, "value")


def test_what_was_read_and_is_not_committed() -> None:
    reading = Reading()
    reading.assign({FIRST, SECOND})
    reading.records += [record(0, 0), record(1, 4), record(0, 1)]
    assert reading.uncommitted() == {FIRST: 2, SECOND: 5}
    reading.committed |= {FIRST: 1, SECOND: 5}
    assert reading.uncommitted() == {FIRST: 2}
    reading.assign({SECOND})
    assert not reading.uncommitted()


def test_a_partition_that_comes_back_was_committed_by_somebody_else() -> None:
    reading = Reading()
    reading.assign({FIRST})
    reading.records += [record(0, 0)]
    reading.assign(set())
    reading.assign({FIRST})  # another member had it, and committed the offset 1
    assert not reading.uncommitted()
    reading.records += [record(0, 1)]
    assert reading.uncommitted() == {FIRST: 2}
    reading.assign({FIRST, SECOND})  # it keeps what it had
    assert reading.uncommitted() == {FIRST: 2}


def test_a_partition_whose_commit_was_refused_is_told_of() -> None:
    said: list[tuple[str, dict[str, object]]] = []
    channel = SimpleNamespace(emit=lambda kind, **fields: said.append((kind, fields)))
    commits = _Commits(cast(Channel, channel))
    kept, refused = (
        cast(TopicPartition, SimpleNamespace(topic="t", partition=number, offset=5, error=error))
        for number, error in enumerate((None, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    )
    commits.report(None, [kept, refused])
    commits.report(None, [kept, refused])  # once is enough
    warning = ("warning", {"line": "WARN commit failed: TOPIC_AUTHORIZATION_FAILED"})
    committed = ("committed", {"offsets": [["t", 0, 5]]})
    assert said == [warning, committed, committed]
    commits.report(None, [kept])
    commits.report(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), [kept])
    assert said[3:] == [committed, warning]
