"""The link between a learner's notebook and its class: sends events, and follows what the instructor releases.

Nothing here makes a learner wait, and nothing raises: a check or a prediction goes on as if there were no class.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from kafkalab.classroom.events import Event, encode
from kafkalab.classroom.membership import Membership, class_folder, forget, membership
from kafkalab.classroom.outbox import Outbox
from kafkalab.classroom.place import last_notebook, remember_notebook, this_notebook
from kafkalab.classroom.released import KEY, NOTHING, Released
from kafkalab.classroom.topics import LARGEST_BATCH, PUBLIC, seat_topic

__all__ = ["UNREACHABLE", "Link"]

UNREACHABLE = 20.0
"""Seconds without an answer from the class, after which nothing waits for it any more."""

_ALIVE = 60.0  # seconds between two signs of life
_CONTACT = 5.0  # seconds between two questions whether the class's cluster answers
_LAST_WORDS = 2.0  # seconds that an ending kernel waits for its events; the rest stays in the outbox
_SHOWN = 100  # of the sent events, those that the learner can look at


class Link:
    """Sends this seat's events, and knows what the instructor has released.

    It begins to work at once, in threads of its own.

    Parameters
    ----------
    membership
        The seat.

    Attributes
    ----------
    membership
        The same.
    pid
        The process that may use it: a forked one makes its own.
    """

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.pid = os.getpid()
        self._notebook = this_notebook()
        self._released = NOTHING
        self._sent: deque[Event] = deque(maxlen=_SHOWN)
        self._outbox = Outbox(class_folder())
        self._events: SimpleQueue[tuple[int, Event]] = SimpleQueue()
        self._followers: list[Callable[[], None]] = []
        self._alive = time.monotonic()  # when the next sign of life is due
        self._contact = time.monotonic()  # the benefit of the doubt, at first
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"kafkalab-class-{work.__name__}", daemon=True)
            for work in (self._send_all, self._follow)
        ]
        self.works_here()  # to open a notebook is to do something in it
        for thread in self._threads:
            thread.start()

    @property
    def seat(self) -> str:
        """The name of the seat."""
        return self.membership.seat

    @property
    def released(self) -> Released:
        """What the instructor has released, as far as it's known here."""
        return self._released

    @property
    def reachable(self) -> bool:
        """Whether the class has answered within the last `UNREACHABLE` seconds."""
        return time.monotonic() - self._contact < UNREACHABLE and not self._closing.is_set()

    @property
    def sent(self) -> list[Event]:
        """The last events that went out or wait for that, newest last: exactly what the class gets from here."""
        return list(self._sent)

    @property
    def waiting(self) -> int:
        """How many events the class hasn't acknowledged yet."""
        return self._outbox.waiting()

    def send(self, event: Event) -> None:
        """Send an event, now or once the class can be reached. Returns at once, and never raises."""
        if event.kind != "alive":
            self.works_here()
        self._sent.append(event)
        self._events.put((self._outbox.add(event), event))

    def works_here(self) -> None:
        """Note that the learner does something in this notebook. If it was another one before, the class hears of it now.

        Several notebooks may be open, and the kernel of each says once a minute where the learner is. So all say the same.
        """
        if self._notebook and last_notebook() != self._notebook:
            with contextlib.suppress(OSError):
                remember_notebook(self._notebook)
            self._alive = time.monotonic()

    def holds(self, question: str) -> bool:
        """Return whether a question's explanation waits for the instructor now."""
        return bool(question) and question in self._released.held and self.reachable and not self._released.ended

    def follow(self, follower: Callable[[], None]) -> None:
        """Call a function, from another thread, whenever something is released, and when the class comes or goes."""
        self._followers.append(follower)

    def leave(self) -> None:
        """Leave the class. Nothing goes out from here any more, and what waits is deleted."""
        forget()
        self._closing.set()
        self._tell_followers()

    def close(self) -> None:
        """End the threads. Events get a moment to go out, and the rest is kept for the next kernel. Safe to call again."""
        if not self._closing.is_set():
            self._closing.set()
            for thread in self._threads:
                thread.join(_LAST_WORDS + 1)

    # -- threads ------------------------------------------------------------------------------------------------

    def _guarded(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(Exception):  # a class must never disturb the one who learns
            work()

    def _send_all(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {
                **self.membership.client_config(),
                "enable.idempotence": True,
                "message.timeout.ms": 0,  # the outbox keeps an event until it's acknowledged, and so does librdkafka
                "linger.ms": 20,
                "batch.size": LARGEST_BATCH // 2,  # the topic takes no larger ones
                "error_cb": lambda _: None,
            }
        )
        for event in self._outbox.left_over():
            self._events.put((self._outbox.add(event), event))
        while not self._closing.is_set():
            if self._notebook and (now := time.monotonic()) >= self._alive:
                self._alive = now + _ALIVE  # before the look where the learner is: who goes elsewhere meanwhile makes it due
                self.send(Event("alive", last_notebook() or self._notebook))
            with contextlib.suppress(Empty):
                self._produce(producer, *self._events.get(timeout=0.1))
            producer.poll(0)
        with contextlib.suppress(Empty):
            while True:
                self._produce(producer, *self._events.get_nowait())
        if membership() == self.membership:  # whoever left wants nothing to go out any more
            producer.flush(_LAST_WORDS)
        self._outbox.close()

    def _produce(self, producer: Any, number: int, event: Event) -> None:
        def delivered(error: object, _: object) -> None:
            if error is None:
                self._outbox.delivered(number)
                self._contact = time.monotonic()

        with contextlib.suppress(BufferError):  # it waits in the outbox, for the next kernel
            producer.produce(seat_topic(self.seat), encode(event, self.membership.schema_id), on_delivery=delivered)

    def _follow(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

        consumer = Consumer(
            {
                **self.membership.client_config(),
                "group.id": self.seat,  # required, and used for nothing: it joins no group and commits nothing
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 500,
                "error_cb": lambda _: None,
            }
        )
        with contextlib.closing(consumer):
            consumer.assign([TopicPartition(PUBLIC, 0, OFFSET_BEGINNING)])
            asked, reachable = 0.0, True
            while not self._closing.is_set():
                if reachable != self.reachable:
                    reachable = not reachable
                    self._tell_followers()
                record = consumer.poll(0.2)
                if record is not None and record.error() is None and record.key() == KEY:
                    self._contact = time.monotonic()
                    self._take(record.value())
                elif time.monotonic() - asked > _CONTACT:
                    asked = time.monotonic()
                    with contextlib.suppress(KafkaException):
                        consumer.get_watermark_offsets(TopicPartition(PUBLIC, 0), timeout=2, cached=False)
                        self._contact = time.monotonic()

    def _take(self, value: bytes | None) -> None:
        try:
            released = Released.from_json(value or b"")
        except ValueError:  # of a newer version of the course
            return
        if released != self._released:
            self._released = released
            self._tell_followers()

    def _tell_followers(self) -> None:
        for follower in list(self._followers):
            with contextlib.suppress(Exception):
                follower()
