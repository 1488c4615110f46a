"""Fetch batches from a leader: the same bytes as in its segment files, for when the files are out of reach."""

from __future__ import annotations

import io

from kafka.protocol.consumer import FetchRequest, FetchResponse

from kafkalab.cluster.log_files import Segment
from kafkalab.cluster.record_batches import RecordBatch, batches_in, with_records
from kafkalab.cluster.view import PartitionView
from kafkalab.cluster.wire import BrokerConnection

__all__ = ["FETCHED_RECORDS", "fetch"]

FETCHED_RECORDS = 1_000
"""The number of offsets before the high watermark that are fetched at most."""

_VERSION = 12  # the last version that names topics
_BYTES = 1 << 20
_CONSUMER = -1


def fetch(connection: BrokerConnection, placed: PartitionView, start: int, end: int) -> Segment:
    """Fetch the batches of the newest records as one piece, because the protocol doesn't show where a segment ends.

    The connection is one to the partition's leader. Its log starts at `start`, and its high watermark is `end`.

    Raises
    ------
    OSError
        If the leader can't be reached or doesn't answer in time.
    """
    offset = first = max(start, end - FETCHED_RECORDS)
    fetched: list[RecordBatch] = []
    while offset < end:
        batches = _batches(connection, placed, offset)
        if not batches:
            break  # the leader has changed, for example
        fetched += batches
        offset = batches[-1].last_offset + 1
    return Segment(first, "fetched", sum(batch.size for batch in fetched), tuple(fetched))


def _batches(connection: BrokerConnection, placed: PartitionView, offset: int) -> list[RecordBatch]:
    topic, partition = FetchRequest.FetchTopic, FetchRequest.FetchTopic.FetchPartition
    request = FetchRequest(
        replica_id=_CONSUMER, max_wait_ms=0, min_bytes=0, max_bytes=_BYTES, isolation_level=0, session_id=0, session_epoch=-1,
        topics=[topic(
            topic=placed.topic,
            partitions=[partition(partition=placed.partition, fetch_offset=offset, partition_max_bytes=_BYTES)],
        )],
        forgotten_topics_data=[], rack_id="", version=_VERSION,
    )  # fmt: skip
    answer = connection.ask(request, FetchResponse, _VERSION)
    for part in (part for topic in answer.responses for part in topic.partitions):
        if part.error_code or not part.records:
            return []
        data = io.BytesIO(bytes(part.records))
        return [with_records(data, batch) for batch in list(batches_in(data))]
    return []
