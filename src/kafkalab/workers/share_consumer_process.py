"""``python -m kafkalab.workers.share_consumer_process``: the process of a `ConsoleShareConsumer`."""

from __future__ import annotations

from typing import Any

from confluent_kafka import AcknowledgeType, ShareConsumer

from kafkalab.workers.channel import Channel

__all__ = ["main"]

_LOOK_AROUND = 0.1  # seconds between two checks for the close command
_COMMIT = 10.0  # seconds for the broker's response to acknowledgements


def main() -> None:
    """Read records until the parent sends close, then leave the group, which gets unacknowledged records back."""
    channel = Channel()
    answer = channel.start["answer"]
    consumer = channel.connect(ShareConsumer)
    consumer.subscribe([channel.start["topic"]])
    channel.ready()
    closing = channel.closing()
    while not closing.is_set():
        polled = consumer.poll(_LOOK_AROUND)
        for error in filter(None, (record.error() for record in polled)):
            channel.warn(error)
        records = [record for record in polled if record.error() is None]
        if not records:
            continue
        if answer == "hold":
            channel.emit("records", records=[_fields(record) for record in records])
            closing.wait()
            break
        for record in records:
            consumer.acknowledge(record, AcknowledgeType[answer.upper()])
        refused = {(p.topic, p.partition): error for p, error in consumer.commit_sync(_COMMIT).items() if error is not None}
        for refusal in refused.values():  # of a record that has been locked for too long, for example
            channel.warn(refusal.args[0])
        # Report those that are acknowledged now. The group gets the others back.
        settled = [record for record in records if (record.topic(), record.partition()) not in refused]
        channel.emit("records", records=[_fields(record) for record in settled])
    consumer.close()
    channel.end("closed")


def _fields(record: Any) -> list[object]:
    value = record.value()
    text = None if value is None else value.decode("utf-8", errors="replace")
    return [record.topic(), record.partition(), record.offset(), text, record.delivery_count()]


if __name__ == "__main__":
    main()
