"""``python -m kafkalab.cluster.relay``: forward the traffic between the brokers of a local cluster.

The brokers' internal listeners advertise ports of this process, which forwards everything. So it can cut a broker off
from its peers without root, while clients still reach the broker through another listener. As in a real network
partition, no connection closes: the relay holds bytes back, and they flow again when the cut is healed.

The relay also holds the port reservations of all brokers while the cluster lives.

Commands arrive over a connection to the control port, one JSON object per line. The relay prints that port on standard
output at the start, and answers each command with one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psutil

from kafkalab.cluster.ports import HOST, Reservation, reserve_port
from kafkalab.errors import PortInUse

CHUNK = 1 << 18


@dataclass(eq=False)
class Link:
    """One connection through the relay.

    Attributes
    ----------
    target
        The node that it goes to.
    ports
        Source port and the relay's own port. Together they identify the link.
    source
        The node that it comes from, if that node is isolated. Otherwise it stays unknown.
    """

    target: int
    ports: tuple[int, int]
    source: int | None = None


class Relay:
    """The internal listeners of all brokers of one cluster."""

    def __init__(self) -> None:
        self.targets: dict[tuple[int, str], int] = {}  # (node, listener) → port on which the node itself listens
        self.held: list[Reservation] = []  # while this process lives
        self.isolated: set[int] = set()
        self.pids: dict[int, int] = {}
        self.links: set[Link] = set()
        self.changed = asyncio.Condition()
        self.looking = asyncio.Lock()

    async def handle(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run one command."""
        match command:
            case {"do": "add", "node": node, "relayed": relayed, "direct": direct}:
                advertised = {name: await self._listen(node, name) for name in relayed}
                bound = {name: self._reserve(0) for name in relayed}
                self.targets |= {(node, name): port for name, port in bound.items()}
                bound |= {name: self._reserve(port, insist=insist) for name, (port, insist) in direct.items()}
                return {"advertised": advertised, "bound": bound}
            case {"do": "move", "node": node, "listener": name}:
                port = self._reserve(0)
                if (node, name) in self.targets:
                    self.targets[node, name] = port
                return {"port": port}
            case {"do": "isolate", "nodes": nodes, "pids": pids}:
                self.pids = {int(node): pid for node, pid in pids.items()}
                self.isolated = set(nodes)
                await self._find_sources(set(self.links))
                async with self.changed:
                    self.changed.notify_all()
                return {}
        return {"error": f"unknown command {command}"}

    def _reserve(self, port: int, *, insist: bool = True) -> int:
        self.held.append(reserve_port(port, insist=insist))
        return self.held[-1].port

    async def _listen(self, node: int, listener: str) -> int:
        port = self._reserve(0)

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            link = Link(node, (writer.get_extra_info("peername")[1], port))
            await self._relay(link, listener, reader, writer)

        await asyncio.start_server(accept, HOST, port, limit=CHUNK, backlog=256)
        return port

    async def _relay(self, link: Link, listener: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.links.add(link)
        onward: asyncio.StreamWriter | None = None
        try:
            if self.isolated:
                await self._find_sources([link])
                await self._gate(link)
            back, forth = await asyncio.open_connection(HOST, self.targets[link.target, listener], limit=CHUNK)
            onward = forth
            for stream in (writer, forth):
                stream.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            directions = [asyncio.create_task(self._pump(link, *way)) for way in ((reader, forth), (back, writer))]
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in directions:
                direction.cancel()
            await self._gate(link)  # while they are cut off, a peer doesn't learn of the other's end either
        except OSError:
            pass  # the node is down: the peer's connection ends, as it would without a relay
        finally:
            self.links.discard(link)
            for end in (writer, onward):
                if end is not None:
                    end.transport.abort()

    async def _pump(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK):
                await self._gate(link)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass

    async def _gate(self, link: Link) -> None:
        if self._cut(link):
            async with self.changed:
                await self.changed.wait_for(lambda: not self._cut(link))

    def _cut(self, link: Link) -> bool:
        return link.source != link.target and (link.target in self.isolated or link.source in self.isolated)

    async def _find_sources(self, links: Iterable[Link]) -> None:
        """Note which links come from an isolated node. Runs in a thread, because asking the system takes milliseconds."""
        async with self.looking:
            for node in sorted(self.isolated & self.pids.keys()):
                ends = await asyncio.to_thread(_connections, self.pids[node])
                for link in links:
                    if link.ports in ends:
                        link.source = node


def _connections(pid: int) -> set[tuple[int, int]]:
    """Return local and remote port of every TCP connection of a process."""
    try:
        return {(c.laddr.port, c.raddr.port) for c in psutil.Process(pid).net_connections("tcp") if c.raddr}
    except psutil.NoSuchProcess:
        return set()


async def main() -> None:
    """Serve commands until SIGTERM."""
    relay = Relay()

    async def control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            try:
                answer = await relay.handle(json.loads(line))
            except PortInUse as error:
                answer = {"port_in_use": str(error)}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    reservation = reserve_port()
    server = await asyncio.start_server(control, HOST, reservation.port)
    print(reservation.port, flush=True)
    sys.stdout.close()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(main())
