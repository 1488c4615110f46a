"""The child's end of the pipes: commands in, events out, a line of JSON each."""

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
    """Talks with the parent.

    The first command is the *start*: a dictionary with the client's ``config`` and whatever else the worker needs.
    """

    def __init__(self) -> None:
        self._out = sys.stdout.buffer
        self._lock = threading.Lock()  # librdkafka's callbacks and the main thread both emit
        self._warnings = Warnings()
        self.start: dict[str, Any] = next(self.commands())

    def commands(self) -> Iterator[dict[str, Any]]:
        """Commands as they come. Where they end the parent is gone, and so is this process, at once."""
        for line in sys.stdin:
            yield json.loads(line)
        os._exit(0)

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
        """Let whatever else this process prints, in Python or Java, go to its log instead of between the events."""
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def connect(self, make: Callable[[dict[str, Any]], Client], **callbacks: object) -> Client:
        """Make the Kafka client with the start's settings; if it refuses them, say so and end."""
        try:
            client = make({**self.start["config"], "error_cb": self.warn, **callbacks})
        except (KafkaException, TypeError, ValueError) as error:
            reason = error.args[0].str() if isinstance(error.args[0], KafkaError) else str(error)
            self.end("refused", reason=reason)
        return client

    def ready(self) -> None:
        """Tell the parent, which waits for that, that it may rely on this process."""
        self.emit("started")

    def warn(self, error: KafkaError) -> None:
        """Pass on what librdkafka complains about, in plain words and not twice in a row."""
        for line in self._warnings.say(error):
            self.emit("warning", line=line)

    def answered(self) -> None:
        """Note that a broker answered: should all be gone later, that is news."""
        self._warnings.answered()

    def end(self, event: str, **fields: object) -> None:
        """Send a last event and end the process, without waiting for librdkafka's threads."""
        self.emit(event, **fields)
        os._exit(0)
