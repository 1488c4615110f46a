"""Choose TCP ports on loopback, and keep them reserved."""

from __future__ import annotations

import random
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafkalab.errors import PortInUse

__all__ = ["HOST", "Reservation", "reserve_port"]

HOST = "127.0.0.1"

# Below the range from which the system takes ports for outgoing connections. A client that keeps trying to reach a dead
# broker could otherwise get the broker's own port as its source, connect to itself and occupy it.
_LOWEST, _HIGHEST = 12_000, 32_000


@dataclass(frozen=True)
class Reservation:
    """A port on loopback that stays reserved until `close` or the end of its ``with`` block."""

    port: int
    _held: socket.socket

    def close(self) -> None:
        """Release the port. Safe to call again."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def reserve_port(port: int = 0, *, insist: bool = True) -> Reservation:
    """Bind a port on loopback without listening, so that only servers that reuse addresses can take it.

    Kafka's listeners reuse addresses. So a broker can listen on a reserved port, and again after it was killed, and no
    other process gets the port in between. (Systems other than Linux don't allow the second bind. There you must close
    the reservation at once, and it only finds a free port.)

    Parameters
    ----------
    port
        The wanted port, or 0 for any free one.
    insist
        Whether it must be this port. Otherwise any free port is reserved if this one is taken.

    Raises
    ------
    PortInUse
        If the port is taken and `insist` is true.
    """
    if port:
        try:
            return _bind(port)
        except PortInUse:
            if insist:
                raise
    for candidate in random.sample(range(_LOWEST, _highest()), 500):
        try:
            return _bind(candidate)
        except PortInUse:
            continue
    return _bind(0)


def _highest() -> int:
    try:
        first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return _HIGHEST
    return max(_LOWEST + 1000, min(_HIGHEST, first_ephemeral))


def _bind(port: int) -> Reservation:
    # Another reservation would tolerate ours, but a listener wouldn't. So look for a listener or a reservation with a
    # plain bind first, then bind for sharing.
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
            port = probe.getsockname()[1]
        except OSError as error:
            raise PortInUse(f"port {port} on {HOST} is taken; choose another, or leave the choice to the cluster") from error
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((HOST, port))
    except OSError as error:
        held.close()
        raise PortInUse(f"port {port} on {HOST} was taken a moment ago") from error
    if sys.platform != "linux":
        held.close()
    return Reservation(port, held)
