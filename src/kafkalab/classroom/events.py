"""What a seat tells its class, and how it's written: Avro, in the registry's wire format.

An event has no name, no code, no output, no message of a check and no path: all of them could say who sent it, or quote
what it works with.
"""

from __future__ import annotations

import io
import json
import re
import struct
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import fastavro

__all__ = ["SCHEMA", "Event", "Kind", "NotAnEvent", "decode", "encode"]

Kind = Literal["checked", "voted", "measured", "help", "done", "alive"]

_SUBJECT = re.compile(r"[\w-]{1,80}")
_MAGIC = 0  # of https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format


class NotAnEvent(ValueError):
    """Raised for bytes that no seat of this course writes."""


@dataclass(frozen=True)
class Event:
    """One thing that happened at a seat.

    Of events with the same kind, subject and round, the one with the highest `at` counts. So an event that's sent twice
    counts once.

    Attributes
    ----------
    kind
        ``checked``: a check has run. ``voted``: a prediction. ``measured``: what a prediction's experiment showed here.
        ``help`` and ``done``: the seat's buttons. ``alive``: the learner is there, in this notebook.
    subject
        What it is about: the id of a check, of a question, or of a notebook.
    at
        When, in milliseconds since 1970, by the seat's clock. It orders the events of one seat.
    round
        Of a vote: 1 alone, 2 after the discussion.
    option
        Of a vote: the number of the option, from 0.
    number
        Of a vote or a measurement: the number.
    met, unmet, waiting
        Of a check: the numbers of its requirements, from 1.
    attempt
        Of a check: how many times it has run here.
    hints
        Of a check: how many hints are open.
    raised
        Of the buttons: whether it's pressed.
    """

    kind: Kind
    subject: str
    at: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    round: int = 0
    option: int | None = None
    number: float | None = None
    met: Sequence[int] = ()
    unmet: Sequence[int] = ()
    waiting: Sequence[int] = ()
    attempt: int = 0
    hints: int = 0
    raised: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise NotAnEvent(f"there is no event {self.kind!r}")
        if not _SUBJECT.fullmatch(self.subject):
            raise NotAnEvent(f"{self.subject!r} isn't the id of a check, a question or a notebook")
        for name in ("met", "unmet", "waiting"):  # Avro and JSON give lists
            object.__setattr__(self, name, tuple(getattr(self, name)))


SCHEMA: str = json.dumps(
    {
        "type": "record",
        "name": "Event",
        "namespace": "kafkalab.classroom",
        "fields": [
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": list(get_args(Kind))}},
            {"name": "subject", "type": "string"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "round", "type": "int", "default": 0},
            {"name": "option", "type": ["null", "int"], "default": None},
            {"name": "number", "type": ["null", "double"], "default": None},
            *({"name": name, "type": {"type": "array", "items": "int"}, "default": []} for name in ("met", "unmet", "waiting")),
            {"name": "attempt", "type": "int", "default": 0},
            {"name": "hints", "type": "int", "default": 0},
            {"name": "raised", "type": "boolean", "default": False},
        ],
    }
)
"""The Avro schema of an event, as the class's registry has it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_PARSED = fastavro.parse_schema(json.loads(SCHEMA))


def encode(event: Event, schema_id: int) -> bytes:
    """Return an event as its topic holds it."""
    out = io.BytesIO()
    out.write(struct.pack(">bI", _MAGIC, schema_id))
    fastavro.schemaless_writer(out, _PARSED, asdict(event))
    return out.getvalue()


def decode(value: bytes, schema_id: int) -> Event:
    """Return the event that a record's value holds.

    Raises
    ------
    NotAnEvent
        If it isn't one, whatever it is.
    """
    try:
        magic, found = struct.unpack(">bI", value[:5])
        if (magic, found) != (_MAGIC, schema_id):
            raise NotAnEvent(f"it begins with {value[:5]!r}")
        rest = io.BytesIO(value[5:])
        fields = fastavro.schemaless_reader(rest, _PARSED, None)
        if rest.read():
            raise NotAnEvent("it's longer than an event")
    except NotAnEvent:
        raise
    except Exception as error:  # whatever struct and fastavro meet in foreign bytes
        raise NotAnEvent(f"it isn't written by the schema: {error!r}") from error
    assert isinstance(fields, dict)
    return Event(**{**fields, "at": (fields["at"] - _EPOCH) // _MILLISECOND})
