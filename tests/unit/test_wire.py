"""A connection to a broker that closes it now and then."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from kafkalab.cluster.wire import BrokerConnection

FRAME = b"\0\0\0\2ok"


class Ask:
    """Stands for a request and for the class of its response."""

    def with_header(self, **_: object) -> None: ...

    def encode(self, **_: object) -> bytes:
        return FRAME

    @staticmethod
    def decode(data: bytes, **_: object) -> bytes:
        return data


@pytest.fixture
def impatient() -> Iterator[tuple[str, list[int]]]:
    """The address of a server that answers each connection's first request and then closes it, and how often it answered."""
    answered: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    question = client.recv(100)
                    answered.append(1)
                    client.sendall(question)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", answered
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_connection_that_was_closed_is_opened_again(impatient: tuple[str, list[int]]) -> None:
    address, answered = impatient
    connection = BrokerConnection(address, timeout=10)
    assert [connection.ask(Ask(), Ask, 0) for _ in range(3)] == [b"ok"] * 3 and len(answered) == 3
    connection.close()


def test_a_server_that_closes_every_connection_at_once_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        connection = BrokerConnection(f"127.0.0.1:{server.getsockname()[1]}", timeout=10)
        with pytest.raises(ConnectionError):
            connection.ask(Ask(), Ask, 0)
        thread.join()
