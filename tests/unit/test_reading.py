"""What a consumer still has to commit."""

from __future__ import annotations

from kafkalab.workers.consumer import Reading, Record

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
