"""What a check looks at: the learner's cluster, and answers that no cluster can give."""

from __future__ import annotations

import contextlib
import re
import shutil
import uuid
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from kafkalab.checks.answers import WrongType, convert
from kafkalab.cluster import Cluster, ClusterView
from kafkalab.cluster.asking import ask
from kafkalab.cluster.offsets import end_offsets, watermarks
from kafkalab.errors import KafkaLabError, WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["CheckContext", "NotNow", "Unmet", "text_of"]

T = TypeVar("T")

_TIMEOUT = 10.0
_READ_TIMEOUT = 60.0
_GROUPS_TIMEOUT = 5.0


class Unmet(Exception):
    """Raised by a probe. The message says what it looked at, what it found, and where to look next. Never the answer."""


class NotNow(Exception):
    """Raised if a probe would call the learner's code, which only a check that the learner asked for may do."""


@dataclass
class CheckContext:
    """Questions about the learner's cluster, each asked again every time, and the learner's answers.

    Attributes
    ----------
    cluster
        The learner's cluster.
    answers
        The other arguments of `check`.
    may_call
        Whether probes may call the learner's functions: these can change the cluster.
    """

    cluster: Cluster
    answers: Mapping[str, object] = field(default_factory=dict)
    may_call: bool = True

    def answer(self, name: str, kind: type[T], what: str, *, may_be_empty: bool = False, keys: Iterable[object] = ()) -> T:
        """Return what the learner passed to `check` under this name, converted to a type.

        Parameters
        ----------
        name
            The keyword.
        kind
            A class, or a built-in generic with its arguments: ``dict[int, int]``, ``tuple[str, int]``. See `answers.convert`.
        what
            A description of the answer, such as "partition → records".
        may_be_empty
            Whether an empty collection or an empty text counts as an answer. (0 and False always do.)
        keys
            What a dictionary must have.

        Raises
        ------
        Unmet
            If the learner passed nothing, a value of another type, or a dictionary that lacks a key.
        """
        if name not in self.answers:
            raise Unmet(f"Give check() your answer as {name}=…: {what}.")
        passed = self.answers[name]
        if passed is None:
            raise Unmet(f"`{name}` is still None. It should be {what}.")
        try:
            value = convert(passed, kind)
        except WrongType as error:
            raise Unmet(f"{error.about(name)} `{name}` should hold {what}.") from None
        if not may_be_empty and not isinstance(value, int | float) and hasattr(value, "__len__") and not value:
            raise Unmet(f"`{name}` is empty. It should hold {what}.")
        if missing := [key for key in keys if key not in cast(Container[object], value)]:
            raise Unmet(f"`{name}` has no {missing[0]!r}.")
        return value

    def error_name(self, name: str, what: str) -> str:
        """Return Kafka's name for an error that the learner passed: as that name, as the error itself, or as it's printed.

        Raises
        ------
        Unmet
            If the learner passed nothing, or something that is no text and no error of Kafka's.
        """
        passed = self.answer(name, object, what)
        error = passed.args[0] if isinstance(passed, KafkaException) and passed.args else passed
        if isinstance(error, KafkaError):
            return str(error.name())
        text = self.answer(name, str, what).strip()
        shown = re.search(r"KafkaError\{code=(\w+),", text)
        return shown[1] if shown else text

    def function(self, name: str, what: str) -> Callable[..., Any]:
        """Return a function, class or other callable that the learner passed to `check` under this name.

        Raises
        ------
        Unmet
            If the learner passed nothing, or something that isn't callable.
        NotNow
            If this check may call none.
        """
        passed = self.answer(name, object, what)
        if not callable(passed):
            raise Unmet(f"`{name}` should be {what}, not the result of calling it ({type(passed).__name__}).")
        if not self.may_call:
            raise NotNow
        return passed

    def view(self) -> ClusterView:
        """Return the cluster's current state, with consumer groups.

        A group is briefly missing while its coordinator moves. So a broker that doesn't report its groups gets a few
        seconds before they count as missing.
        """
        view = self.cluster.describe()
        with contextlib.suppress(WaitTimeout):
            if view.silent:
                view = self.cluster.wait_for(lambda v: v if not v.silent else None, "all groups", _GROUPS_TIMEOUT, groups=True)
        return view

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return each partition's end offset: how many records it ever got (aborted transactions count, too)."""
        return end_offsets(self.cluster, topic)

    def record_count(self, topic: str) -> int:
        """Return how many records a topic ever got, as `end_offsets` counts them."""
        return sum(self.end_offsets(topic).values())

    def records(self, topic: str) -> list[Message]:
        """Return all records of a topic, partition by partition, each in order of offset."""
        marks = {p: (low, high) for p, (low, high) in watermarks(self.cluster, topic).items() if high > low}
        if not marks:
            return []
        # The client requires a group id, but this consumer commits nothing and joins no group: it assigns partitions by
        # hand.
        consumer = Consumer(self.cluster.client_config(group_id=f"check-{uuid.uuid4().hex[:6]}", enable_auto_commit=False))
        try:
            consumer.assign([TopicPartition(topic, p, low) for p, (low, _) in marks.items()])
            read: list[Message] = []
            errors: list[Message] = []
            ends = {p: high for p, (_, high) in marks.items()}

            def all_read() -> bool:
                # A few milliseconds at a time, because consume() waits until it has as many records as it may return.
                for message in consumer.consume(1000, 0.02):
                    (read if message.error() is None else errors).append(message)
                # The position may be beyond the end if a producer is still writing.
                return all(p.offset >= ends[p.partition] for p in consumer.position([TopicPartition(topic, p) for p in ends]))

            what = f"all records of {topic} to be read"

            def last_seen() -> str:
                return f"{len(read)} records" + (f", and {errors[-1].error()}" if errors else "")

            wait_until(all_read, _READ_TIMEOUT, what, last_seen=last_seen, interval=0)
        finally:
            consumer.close()
        return sorted(read, key=lambda m: (m.partition(), m.offset()))

    def values(self, topic: str) -> list[str]:
        """Return the values of all records of a topic as text, in the order of `records`."""
        return [text_of(m) for m in self.records(topic)]

    def topic_config(self, topic: str) -> dict[str, str]:
        """Return the effective settings of a topic.

        Raises
        ------
        KafkaLabError
            If Kafka doesn't report them, for example because the topic doesn't exist.
        """
        resource = ConfigResource(ResourceType.TOPIC, topic)

        def read() -> dict[str, str]:
            try:
                return self.config(resource)
            except KafkaException as error:
                # Any broker may answer, and it may learn of a new topic later than the others.
                if (
                    error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                    and topic in self.cluster.describe(groups=False).topics
                ):
                    return {}
                raise KafkaLabError(f"the settings of {topic} could not be read: {error.args[0].str()}") from error

        return wait_until(read, _TIMEOUT, f"every broker to know {topic}")

    def config(self, resource: ConfigResource) -> dict[str, str]:
        """Return the effective settings of a topic, a broker or a group. Raise `KafkaException` as `ask` does."""
        entries = ask(self.cluster, lambda admin: admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in entries.items()}

    def log_files(self, topic: str) -> dict[int, list[str]]:
        """Return the names of each partition's segment files in order, on one of the running brokers."""
        view = self.cluster.describe(groups=False)
        broker = view.brokers_up[0]
        copy = self.cluster.disk.copy_log_dir(broker, topic)
        try:
            return {
                p.partition: sorted(file.name for file in (copy / f"{topic}-{p.partition}").glob("*.log"))
                for p in view.topics[topic]
            }
        finally:
            shutil.rmtree(copy, ignore_errors=True)


def text_of(message: Message) -> str:
    """Return a record's value as text, or an empty text."""
    return (message.value() or b"").decode(errors="replace")
