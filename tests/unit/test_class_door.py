"""The door of a class, on loopback: who gets a seat, and who is refused why."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalab.classroom.door import Door, Seats
from kafkalab.classroom.join_code import JoinCode, fingerprint_of
from kafkalab.classroom.joining import take_seat
from kafkalab.classroom.membership import Membership
from kafkalab.classroom.teaching import certificate_of
from kafkalab.errors import KafkaLabError, PortInUse
from kafkalab.security.authority import CertificateAuthority, Identity

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Identity, Identity]:
    authority = CertificateAuthority(tmp_path_factory.mktemp("door"))
    return authority.issue("door", [HOST]), authority.issue("other", [HOST])


@pytest.fixture
def seats() -> Seats:
    def admit(seat: str) -> Membership:
        if seat == "poor-mouse":
            raise KafkaLabError("the class's cluster refuses: no room")
        return Membership("c1a55", seat, "127.0.0.1:1", "secret", "", 7, time.time() + 60)

    return Seats(admit, most=3)


@pytest.fixture
def door(seats: Seats, identities: tuple[Identity, Identity]) -> Iterator[Door]:
    door = Door(seats, b"secret", identities[0])
    door.start(HOST, 0)
    yield door
    door.stop()


def code(door: Door, identity: Identity, secret: bytes = b"secret") -> JoinCode:
    return JoinCode(HOST, door.port, time.time() + 60, secret, fingerprint_of(certificate_of(identity.certificate)))


def test_who_has_the_code_gets_a_seat(door: Door, seats: Seats, identities: tuple[Identity, Identity]) -> None:
    mine = code(door, identities[0])
    first, second = take_seat(mine), take_seat(mine, "brave-otter")
    assert second.seat == "brave-otter" and first.seat != second.seat
    assert seats.taken == {first.seat, "brave-otter"}


def test_a_seat_is_given_once_and_a_full_class_says_so(door: Door, identities: tuple[Identity, Identity]) -> None:
    mine = code(door, identities[0])
    take_seat(mine, "brave-otter")
    with pytest.raises(KafkaLabError, match="the seat brave-otter is taken. Without --seat"):
        take_seat(mine, "brave-otter")
    with pytest.raises(KafkaLabError, match="a seat's name is two words like brave-otter, not '../x'"):
        take_seat(mine, "../x")
    with pytest.raises(KafkaLabError, match="the class's cluster refuses: no room"):
        take_seat(mine, "poor-mouse")  # and it isn't taken
    take_seat(mine), take_seat(mine)
    with pytest.raises(KafkaLabError, match="all 3 seats are taken"):
        take_seat(mine)


def test_another_class_is_told_from_this_one(door: Door, seats: Seats, identities: tuple[Identity, Identity]) -> None:
    with pytest.raises(KafkaLabError, match=rf"another class answers at {HOST}:{door.port}. Ask for the code of yours"):
        take_seat(code(door, identities[1]))
    with pytest.raises(KafkaLabError, match="this code isn't today's"):
        take_seat(code(door, identities[0], b"yester"))
    assert not seats.taken


def test_nobody_and_somebody_else_are_told_from_a_class(identities: tuple[Identity, Identity], seats: Seats) -> None:
    gone = Door(seats, b"secret", identities[0])
    gone.start(HOST, 0)
    gone.stop()
    with pytest.raises(KafkaLabError, match=rf"no class answers at {HOST}:{gone.port}: .*refused. Does it run"):
        take_seat(code(gone, identities[0]))
    with socket.create_server((HOST, 0)) as stranger:
        stranger.listen()
        with pytest.raises(PortInUse, match=r"port \d+ at 127.0.0.1 is taken; choose another: --port"):
            gone.start(HOST, stranger.getsockname()[1])
    with pytest.raises(KafkaLabError, match="nothing can listen at 192.0.2.1"):
        gone.start("192.0.2.1", 0)


def test_what_is_no_request_is_refused(door: Door, identities: tuple[Identity, Identity], tmp_path: Path) -> None:
    import http.client
    import ssl

    context = ssl.create_default_context(cafile=str(identities[0].authority))
    for body in (b"", b"[]", b'{"secret": "x"}', b"\xff"):
        client = http.client.HTTPSConnection(HOST, door.port, timeout=5, context=context)
        client.request("POST", "/seat", body)
        response = client.getresponse()
        assert response.status == 400 and b"no request for a seat" in response.read()
        client.close()
