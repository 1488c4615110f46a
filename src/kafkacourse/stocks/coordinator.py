"""What a consumer is told while a group's coordinator isn't ready."""

from __future__ import annotations

from confluent_kafka import KafkaError

__all__ = ["NOT_READY"]

NOT_READY = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
"""Codes of errors by which a consumer with manually assigned partitions learns that no committed offset is available yet.

A consumer that joins a group doesn't see them, because joining waits for the coordinator. A consumer that assigns its
partitions does: in a new cluster, or after the coordinator moved. The client finds the new coordinator by itself, but
doesn't ask it again. It leaves a partition without a start offset unread until you assign the partition once more
(https://github.com/confluentinc/librdkafka/issues/5586).
"""
