"""``python -m kafkalab.workers.producer_process``: the process of a `ConsoleProducer`."""

from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kafkalab.workers.channel import Channel

__all__ = ["main"]


def main() -> None:
    """Send what the parent says, one message at a time, until it says close."""
    channel = Channel()
    producer = channel.connect(Producer)
    channel.ready()
    # Somebody has to serve librdkafka while nothing is sent, or a lost broker would go unnoticed.
    threading.Thread(target=_serve, args=(producer,), daemon=True).start()
    for command in channel.commands():
        if command["do"] == "close":
            channel.end("closed")
        _send(channel, producer, command)


def _serve(producer: Producer) -> None:
    while True:
        producer.poll(1.0)


def _send(channel: Channel, producer: Producer, command: dict[str, Any]) -> None:
    target = {} if command["partition"] is None else {"partition": command["partition"]}
    for value in command["values"]:
        about = {"id": command["id"], "value": value}
        error, message = _deliver(producer, command["topic"], value=value, key=command["key"], **target)
        if error is not None:
            channel.emit("failed", **about, code=error.name(), reason=error.str())
            return
        channel.answered()
        channel.emit("sent", **about, partition=message.partition(), offset=message.offset())


def _deliver(producer: Producer, topic: str, **fields: Any) -> tuple[KafkaError | None, Message | None]:
    outcome: list[tuple[KafkaError | None, Message]] = []
    delivered = threading.Event()  # the report may be served by the other thread

    def report(error: KafkaError | None, message: Message) -> None:
        outcome.append((error, message))
        delivered.set()

    try:
        producer.produce(topic, on_delivery=report, **fields)
    except KafkaException as refused:
        return refused.args[0], None
    producer.flush()
    delivered.wait()
    return outcome[0]


if __name__ == "__main__":
    main()
