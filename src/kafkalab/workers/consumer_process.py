"""``python -m kafkalab.workers.consumer_process``: the process of a `ConsoleConsumer`."""

from __future__ import annotations

import contextlib

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from kafkalab.workers.channel import Channel

__all__ = ["main"]

_BATCH = 500
_LOOK_AROUND = 0.1  # seconds between two checks for the close command
_LOOKUP = 3.0  # seconds to look up where to start


def main() -> None:
    """Read until the parent sends close, then leave the group."""
    channel = Channel()
    start = channel.start
    commits = _Commits(channel)
    consumer = channel.connect(Consumer, on_commit=commits.report)
    assignment = _Assignment(channel, start["cooperative"], start["reset"])
    if start["partitions"] is None:
        consumer.subscribe([start["topic"]], on_assign=assignment.assign, on_revoke=assignment.revoke)
    else:
        offset = OFFSET_BEGINNING if start["reset"] == "earliest" else OFFSET_END
        wanted = [TopicPartition(start["topic"], p, offset) for p in start["partitions"]]
        consumer.assign(_at_the_end(consumer, wanted) if offset == OFFSET_END else wanted)
        channel.emit("assigned", partitions=[[p.topic, p.partition] for p in wanted])
    channel.ready()  # only after the assignment, because it must read everything sent from then on
    closing = channel.closing()
    while not closing.is_set():
        _pass_on(channel, consumer, assignment)
    if start["partitions"] is None and "group.instance.id" not in start["config"]:  # a static member keeps its place
        # First answer a rebalance that waits for an answer: close may otherwise hang (librdkafka's issue 4884).
        with contextlib.suppress(KafkaException):  # a fenced consumer is no longer a member
            consumer.unsubscribe()
        _pass_on(channel, consumer, assignment)
    consumer.close()
    channel.end("closed")


def _pass_on(channel: Channel, consumer: Consumer, assignment: _Assignment) -> None:
    # Wait for the first record only: available records are passed on at once, many in one event.
    records = []
    message = consumer.poll(_LOOK_AROUND)
    while message is not None:
        error = message.error()
        if error is not None:
            if error != KafkaError.UNKNOWN_TOPIC_OR_PART or assignment.made:
                channel.warn(error)  # else the topic is so new that this broker doesn't know it yet
        else:
            records.append(_fields(message))
        message = consumer.poll(0) if len(records) < _BATCH else None
    if records:
        channel.answered()
        channel.emit("records", records=records)


def _fields(message: Message) -> list[object]:
    return [message.topic(), message.partition(), message.offset(), _text(message.key()), _text(message.value())]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", errors="replace")


def _at_the_end(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    # librdkafka would look up "latest" some time after the assignment, and miss a record sent in between. Once this
    # consumer shows an assignment, it must read everything sent from then on.
    try:
        ends = consumer.offsets_for_times([TopicPartition(p.topic, p.partition, OFFSET_END) for p in partitions], _LOOKUP)
    except KafkaException:
        return partitions  # no leader answers; librdkafka looks again when one does
    return [p if end.error else end for p, end in zip(partitions, ends, strict=True)]


class _Assignment:
    """Report this member's assigned partitions to the parent, and start where ``auto.offset.reset`` says."""

    def __init__(self, channel: Channel, cooperative: bool, reset: str) -> None:
        self._channel = channel
        self._cooperative = cooperative
        self._reset = reset
        self._owned: set[tuple[str, int]] = set()
        self.made = False

    def assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        begin = self._where_to_begin(consumer, partitions) if self._reset == "latest" and partitions else partitions
        if self._cooperative:
            consumer.incremental_assign(begin)
        else:
            consumer.assign(begin)
        self.made = True
        self._owned |= {(p.topic, p.partition) for p in partitions}
        self._announce()

    def revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned -= {(p.topic, p.partition) for p in partitions}
        self._announce()

    def _announce(self) -> None:
        self._channel.emit("assigned", partitions=sorted(self._owned))

    @staticmethod
    def _where_to_begin(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
        try:
            committed = consumer.committed(partitions, timeout=_LOOKUP)
        except KafkaException:
            return partitions
        fresh = [p for p in committed if p.offset < 0]
        return [p for p in committed if p.offset >= 0] + (_at_the_end(consumer, fresh) if fresh else [])


class _Commits:
    """Report commits to the parent, and failed commits as warnings."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._failing: str | None = None

    def report(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        # A broker may refuse single partitions of a commit that succeeds otherwise.
        failed = error or next((p.error for p in partitions if p.error is not None), None)
        if failed is None:
            self._failing = None
        elif failed.name() not in ("_NO_OFFSET", self._failing):
            self._failing = failed.name()
            self._channel.emit("warning", line=f"WARN commit failed: {failed.name()}")
        if error is None:
            done = [[p.topic, p.partition, p.offset] for p in partitions if p.error is None and p.offset >= 0]
            self._channel.emit("committed", offsets=done)


if __name__ == "__main__":
    main()
