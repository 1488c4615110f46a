"""The join code: where a class's door is, how to know that it's the right one, and until when it's open."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import struct
import time
from dataclasses import dataclass, field

from kafkalab.errors import KafkaLabError

__all__ = ["FINGERPRINT", "SECRET", "JoinCode", "fingerprint_of", "read_join_code"]

SECRET = 6
"""Bytes of the secret that opens the door. Guessing it over a network takes longer than any class."""

FINGERPRINT = 10
"""Bytes of the fingerprint. Nobody finds another certificate with the same 80 bits."""

_VERSION = 1
_GROUP = 6  # characters between two hyphens
_SUM = 2  # bytes that show a slip of the pen
_NOT_A_CODE = "this isn't a join code, or a part of it is missing. Copy the whole line that `kafkalab teach` shows"


@dataclass(frozen=True)
class JoinCode:
    """What a learner needs to find the door of a class.

    Attributes
    ----------
    host, port
        The door's address.
    expires
        When the class is over, in seconds since 1970. The code keeps whole minutes.
    secret
        What opens the door.
    fingerprint
        Begin of the SHA-256 sum of the door's certificate.
    """

    host: str
    port: int
    expires: float
    secret: bytes = field(repr=False)
    fingerprint: bytes

    def __str__(self) -> str:
        address = ipaddress.ip_address(self.host).packed
        body = struct.pack(">BB", _VERSION, len(address)) + address
        body += struct.pack(">HI", self.port, int(self.expires // 60)) + self.secret + self.fingerprint
        text = base64.b32encode(body + _sum(body)).decode().rstrip("=")
        return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))


def read_join_code(text: str) -> JoinCode:
    """Read a join code. Case, spaces and hyphens don't matter.

    Raises
    ------
    KafkaLabError
        If it isn't one, or its class is over.
    """
    plain = "".join(text.split()).replace("-", "").upper().replace("0", "O").replace("1", "I").replace("8", "B")
    try:
        data = base64.b32decode(plain + "=" * (-len(plain) % 8))
        body, proof = data[:-_SUM], data[-_SUM:]
        if _sum(body) != proof or body[0] != _VERSION:
            raise ValueError
        length = body[1]
        host = str(ipaddress.ip_address(body[2 : 2 + length]))
        port, minutes = struct.unpack(">HI", body[2 + length : 8 + length])
        rest = body[8 + length :]
        if len(rest) != SECRET + FINGERPRINT:
            raise ValueError
    except (ValueError, binascii.Error, struct.error, IndexError) as error:
        raise KafkaLabError(_NOT_A_CODE) from error
    code = JoinCode(host, port, minutes * 60.0, rest[:SECRET], rest[SECRET:])
    if code.expires <= time.time():
        ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(code.expires))
        raise KafkaLabError(f"this code's class ended on {ended}. Ask for today's code")
    return code


def fingerprint_of(certificate: bytes) -> bytes:
    """Return the fingerprint of a certificate (DER) as join codes have it."""
    return hashlib.sha256(certificate).digest()[:FINGERPRINT]


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:_SUM]
