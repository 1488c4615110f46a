"""Ports on loopback: the one asked for, or another, and kept where the system can keep them."""

from __future__ import annotations

import socket
import sys

import pytest

from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.errors import PortInUse


def listen(port: int) -> socket.socket:
    return socket.create_server((HOST, port))  # reuses addresses, as Kafka does


linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux lets a server listen on a port that another process keeps"
)


@linux
def test_a_reserved_port_is_kept_for_a_server_that_reuses_addresses() -> None:
    with reserve_port() as reservation:
        with pytest.raises(PortInUse, match=str(reservation.port)):
            reserve_port(reservation.port)
        listen(reservation.port).close()
    reserve_port(reservation.port).close()


def test_another_port_will_do() -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with reserve_port(port, insist=False) as other:
            assert other.port != port
    with reserve_port(port, insist=False) as wanted:
        assert wanted.port == port


def test_where_a_port_cannot_be_kept_a_free_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with reserve_port() as reservation, socket.socket() as server:
        server.bind((HOST, reservation.port))
