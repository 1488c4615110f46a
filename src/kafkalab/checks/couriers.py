"""A producer that sends nothing: a probe passes it to a learner's function to see what that does about failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

__all__ = ["Courier"]


class Courier(Producer):
    """A producer that sends nothing, and reports what the probe chose: delivered, failed, or nothing at all.

    Parameters
    ----------
    settings
        Settings of a real producer.
    record
        What it reports on.
    error
        Reported with each record, unless it's None.
    answers
        Whether it reports anything.
    """

    def __init__(
        self, settings: Mapping[str, object], record: Message, error: KafkaError | None = None, *, answers: bool = True
    ) -> None:
        super().__init__(dict(settings))
        self.sent, self.flushed = 0, False
        self._record, self._error, self._answers = record, error, answers
        self._waiting: list[Any] = []  # the learner's callbacks

    def produce(self, topic: str, *args: Any, **kwargs: Any) -> None:
        """Take a record, and keep its callback."""
        self.sent, self.flushed = self.sent + 1, False
        arguments = {**dict(zip(("value", "key", "partition", "callback", "on_delivery"), args, strict=False)), **kwargs}
        self._waiting.append(arguments.get("on_delivery") or arguments.get("callback"))

    def produce_batch(
        self,
        topic: str,
        messages: Sequence[Mapping[str, Any]],
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
    ) -> int:
        """Take several records, each with its own callback or with that of all."""
        for message in messages:
            own = message.get("on_delivery") or message.get("callback")
            self.produce(topic, on_delivery=own or on_delivery or callback)
        return len(messages)

    def poll(self, timeout: float = 0) -> int:
        """Report all records that wait, if it reports anything."""
        due, self._waiting = (self._waiting, []) if self._answers else ([], self._waiting)
        for report in due:
            if report is not None:
                report(self._error, self._record)
        return len(due)

    def flush(self, timeout: float = 0) -> int:
        """Report like `poll`, and return how many records still wait."""
        self.flushed = True
        self.poll()
        return len(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        return True
