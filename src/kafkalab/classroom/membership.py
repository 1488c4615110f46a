"""The learner's seat in a class: what `kafkalab join` got, in a file that only the learner can read."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kafkalab.paths import progress_dir
from kafkalab.security.files import private_folder, write_private

__all__ = ["Membership", "class_folder", "forget", "keep", "membership"]


@dataclass(frozen=True)
class Membership:
    """A seat in a class.

    Attributes
    ----------
    class_id
        The class: a random word.
    seat
        The seat, two random words.
    servers
        ``host:port`` of the class's brokers, separated by commas.
    password
        The seat's password, made for this class.
    authority
        PEM: the certificate that signs the brokers' ones. Empty if the machine's own authorities do.
    schema_id
        The registry's id of the events' schema.
    expires
        When the class is over, in seconds since 1970.
    """

    class_id: str
    seat: str
    servers: str
    password: str = field(repr=False)
    authority: str = field(repr=False)
    schema_id: int
    expires: float

    def client_config(self) -> dict[str, object]:
        """Return librdkafka settings to reach the class's cluster as this seat: TLS, and a SCRAM login."""
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": self.seat,
            "sasl.password": self.password,
            **({"ssl.ca.pem": self.authority} if self.authority else {}),
            "reconnect.backoff.max.ms": 5000,
            "log_level": 0,  # the class's cluster may be gone, and nobody who works here wants to read that
        }


def membership() -> Membership | None:
    """Return the seat taken on this machine, or None: without a class, after it's over, or if its file can't be read."""
    try:
        seat = Membership(**json.loads(_path().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return seat if seat.expires > time.time() else None


def keep(seat: Membership) -> None:
    """Keep a seat. Raise `OSError` if the folder can't be written."""
    private_folder(class_folder())
    write_private(_path(), json.dumps(asdict(seat)))


def forget() -> None:
    """Give the seat up on this machine. What waits to be sent is deleted, too."""
    for path in class_folder().glob("*.json*"):
        path.unlink(missing_ok=True)


def class_folder() -> Path:
    """Return the folder of the seat, and of events that wait to be sent. It's beside the progress."""
    return progress_dir() / "class"


def _path() -> Path:
    return class_folder() / "seat.json"
