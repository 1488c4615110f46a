"""``python -m kafkalab.workers.producer_process``: the process of a `ConsoleProducer`."""

from __future__ import annotations

import threading
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kafkalab.workers.channel import Channel

__all__ = ["main"]


def main() -> None:
    """Send the parent's messages, one at a time, until it sends close."""
    channel = Channel()
    producer = channel.connect(Producer)
    channel.ready()
    # A thread serves librdkafka while nothing is sent. Otherwise a lost broker would go unnoticed.
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
        outcome = _deliver(producer, command["topic"], value=value, key=command["key"], **target)
        if isinstance(outcome, KafkaError):
            channel.emit("failed", **about, code=outcome.name(), reason=outcome.str())
            return
        channel.answered()
        channel.emit("sent", **about, partition=outcome.partition(), offset=outcome.offset())


def _deliver(producer: Producer, topic: str, **fields: Any) -> KafkaError | Message:
    outcome: list[KafkaError | Message] = []
    delivered = threading.Event()  # the other thread may serve the report

    def report(error: KafkaError | None, message: Message) -> None:
        outcome.append(error or message)
        delivered.set()

    try:
        producer.produce(topic, on_delivery=report, **fields)
    except KafkaException as refused:
        return cast(KafkaError, refused.args[0])
    producer.flush()
    delivered.wait()
    return outcome[0]


if __name__ == "__main__":
    main()
