"""The broker that knows what a group has committed, when it is not ready."""

from __future__ import annotations

from confluent_kafka import KafkaError

__all__ = ["NOT_READY"]

NOT_READY = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
"""Codes of errors that tell a consumer with partitions assigned by hand that nobody can say yet where to begin.

Who joins a group does not see them, since joining waits for the coordinator. Who assigns does: in a new cluster, or when the
coordinator has moved. The client looks for the right one by itself, but does not ask it again: a partition without an offset to
begin at is left unread until it is assigned once more (https://github.com/confluentinc/librdkafka/issues/5586).
"""
