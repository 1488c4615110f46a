"""The child's end of the pipes: commands in, events out, one line of JSON each."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from kafkalab.workers.plain_words import Warnings

__all__ = ["Channel"]

Client = TypeVar("Client")


class Channel:
    """Exchange commands and events with the parent.

    The first command is the *start*: a dictionary with the client's ``config`` and everything else the worker needs.
    """

    def __init__(self) -> None:
        self._out = sys.stdout.buffer
        self._lock = threading.Lock()  # librdkafka's callbacks and the main thread both emit
        self._warnings = Warnings()
        self.start: dict[str, Any] = next(self.commands())

    def commands(self) -> Iterator[dict[str, Any]]:
        """Yield commands as they arrive. When the pipe closes, the parent is gone, and this process exits at once."""
        for line in sys.stdin:
            yield json.loads(line)
        os._exit(0)

    def closing(self) -> threading.Event:
        """Return an event that is set as soon as the parent sends close, if that's the only command."""
        closing = threading.Event()

        def listen() -> None:
            for _ in self.commands():
                closing.set()

        threading.Thread(target=listen, daemon=True).start()
        return closing

    def emit(self, event: str, **fields: object) -> None:
        """Send an event to the parent."""
        line = json.dumps({"event": event, **fields}, ensure_ascii=False).encode() + b"\n"
        try:
            with self._lock:
                self._out.write(line)
                self._out.flush()
        except BrokenPipeError:
            os._exit(0)

    def keep_to_itself(self) -> None:
        """Send all other output of this process, from Python or Java, to its log instead of between the events."""
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def connect(self, make: Callable[[dict[str, Any]], Client], **callbacks: object) -> Client:
        """Create the Kafka client with the start's settings. If it rejects them, report that and end."""
        try:
            client = make({**self.start["config"], "error_cb": self.warn, **callbacks})
        except (KafkaException, TypeError, ValueError) as error:
            reason = error.args[0].str() if isinstance(error.args[0], KafkaError) else str(error)
            self.end("refused", reason=reason)
        return client

    def ready(self) -> None:
        """Report to the waiting parent that this process is ready."""
        self.emit("started")

    def warn(self, error: KafkaError) -> None:
        """Pass on a warning of librdkafka in plain words, but not twice in a row."""
        for line in self._warnings.say(error):
            self.emit("warning", line=line)

    def answered(self) -> None:
        """Note that a broker answered, so that it's reported if all brokers go down later."""
        self._warnings.answered()

    def end(self, event: str, **fields: object) -> None:
        """Send a last event and end the process, without waiting for librdkafka's threads."""
        self.emit(event, **fields)
        os._exit(0)
