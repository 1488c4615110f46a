"""Take a seat in a class: knock at its door with the join code."""

from __future__ import annotations

import http.client
import json
import ssl

from kafkalab.classroom.join_code import JoinCode, fingerprint_of
from kafkalab.classroom.membership import Membership
from kafkalab.errors import KafkaLabError

__all__ = ["take_seat"]

_CONNECT_SECONDS = 15.0
_SEAT_SECONDS = 90.0  # a seat is a user, a topic and an ACL; the first ones wait for the class's registry, too


def take_seat(code: JoinCode, wanted: str = "") -> Membership:
    """Take a seat, by its name or any free one. Nothing is kept here yet.

    Raises
    ------
    KafkaLabError
        If nobody answers there, another class does, or the class refuses.
    """
    where = f"{code.host}:{code.port}"
    # The join code names the certificate, so no authority has to. Nothing is sent before it's compared.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    door = http.client.HTTPSConnection(code.host, code.port, timeout=_CONNECT_SECONDS, context=context)
    try:
        door.connect()
        assert isinstance(door.sock, ssl.SSLSocket)
        if fingerprint_of(door.sock.getpeercert(binary_form=True) or b"") != code.fingerprint:
            raise KafkaLabError(f"another class answers at {where}. Ask for the code of yours")
        door.sock.settimeout(_SEAT_SECONDS)
        door.request("POST", "/seat", json.dumps({"secret": code.secret.hex(), "seat": wanted}))
        response = door.getresponse()
        answer = json.loads(response.read())
    except ssl.SSLError as error:
        raise KafkaLabError(f"something else than a class answers at {where}: {error.reason}") from error
    except OSError as error:
        raise KafkaLabError(
            f"no class answers at {where}: {error.strerror or error}. Does it run, and are you in the same network?"
        ) from error
    except (http.client.HTTPException, ValueError) as error:
        raise KafkaLabError(f"something else than a class answers at {where}: {error!r}") from error
    finally:
        door.close()
    if response.status != 200:
        raise KafkaLabError(str(answer.get("error", response.reason)))
    try:
        return Membership(**answer)
    except TypeError as error:
        raise KafkaLabError(
            "the class runs another version of the course than yours. `kafkalab --version` shows yours"
        ) from error
