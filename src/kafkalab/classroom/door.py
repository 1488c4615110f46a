"""The door of a class: hands out seats to who has the join code, over TLS."""

from __future__ import annotations

import asyncio
import hmac
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from kafkalab.classroom.membership import Membership
from kafkalab.classroom.seats import free_seat, is_seat
from kafkalab.errors import KafkaLabError, PortInUse
from kafkalab.security.authority import Identity

__all__ = ["Door", "Seats"]


class Seats:
    """The seats of a class: who asks for one gets it, once.

    Several threads may use it.

    Parameters
    ----------
    admit
        Makes a seat of this name in the cluster, and returns what its learner needs.
    most
        How many seats there are.
    """

    def __init__(self, admit: Callable[[str], Membership], most: int) -> None:
        self._admit = admit
        self._most = most
        self._taken: set[str] = set()
        self._lock = threading.Lock()

    @property
    def taken(self) -> frozenset[str]:
        """The names of the seats that are taken."""
        with self._lock:
            return frozenset(self._taken)

    def take(self, wanted: str = "") -> Membership:
        """Take a seat: the wanted one, or a free one with a random name.

        Raises
        ------
        KafkaLabError
            If that seat is taken, its name isn't one, the class is full, or the cluster refuses.
        """
        with self._lock:
            if wanted and not is_seat(wanted):
                raise KafkaLabError(f"a seat's name is two words like brave-otter, not {wanted!r}")
            if wanted in self._taken:
                raise KafkaLabError(f"the seat {wanted} is taken. Without --seat you get a free one")
            if len(self._taken) >= self._most:
                raise KafkaLabError(f"all {self._most} seats are taken. Your instructor can start the class with more: --seats")
            seat = wanted or free_seat(self._taken)
            self._taken.add(seat)
        try:
            return self._admit(seat)
        except BaseException:
            with self._lock:
                self._taken.discard(seat)
            raise


class Door:
    """A small server that hands out seats. It runs in a thread of its own, from `start` to `stop`.

    Parameters
    ----------
    seats
        The seats.
    secret
        What the join code holds.
    identity
        The door's certificate.
    """

    def __init__(self, seats: Seats, secret: bytes, identity: Identity) -> None:
        self._seats = seats
        self._secret = secret
        self._identity = identity
        self._thread: threading.Thread | None = None
        self._loop: IOLoop | None = None
        self.port = 0

    def start(self, host: str, port: int) -> None:
        """Listen. With port 0, at any free one.

        Raises
        ------
        PortInUse
            If the port is taken.
        KafkaLabError
            If this machine hasn't got that address.
        """
        try:
            sockets = bind_sockets(port, host)
        except OSError as error:
            if error.errno in (98, 48):  # EADDRINUSE on Linux and macOS
                raise PortInUse(f"port {port} at {host} is taken; choose another: --port") from error
            raise KafkaLabError(f"nothing can listen at {host}: {error.strerror}. Which addresses has this machine?") from error
        self.port = sockets[0].getsockname()[1]
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._identity.certificate, self._identity.key)
        listening = threading.Event()

        def serve() -> None:
            asyncio.set_event_loop(asyncio.new_event_loop())
            self._loop = IOLoop.current()
            application = Application([("/seat", _TakeSeat, {"door": self})], log_function=lambda _: None)
            server = HTTPServer(application, ssl_options=context, max_body_size=10_000, idle_connection_timeout=10)
            server.add_sockets(sockets)
            self._loop.add_callback(listening.set)
            self._loop.start()
            server.stop()
            self._loop.close(all_fds=True)

        self._thread = threading.Thread(target=serve, name="kafkalab-door", daemon=True)
        self._thread.start()
        listening.wait(10)

    def stop(self) -> None:
        """Close the door. Safe to call again."""
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            self._loop.add_callback(self._loop.stop)
            self._thread.join(10)

    def open_for(self, secret: str) -> bool:
        """Return whether this is the secret of the join code."""
        return hmac.compare_digest(secret.encode(), self._secret.hex().encode())

    def take(self, wanted: str) -> Membership:
        """Take a seat; see `Seats.take`."""
        return self._seats.take(wanted)


class _TakeSeat(RequestHandler):
    def initialize(self, door: Door) -> None:
        self._door = door

    async def post(self) -> None:
        try:
            asked: Any = json.loads(self.request.body)
            secret, wanted = str(asked["secret"]), str(asked["seat"])
        except (ValueError, TypeError, KeyError):
            self._refuse(400, "that's no request for a seat")
            return
        if not self._door.open_for(secret):
            self._refuse(403, "this code isn't today's. Ask for the one that `kafkalab teach` shows now")
            return
        try:
            seat = await asyncio.get_running_loop().run_in_executor(None, self._door.take, wanted)
        except KafkaLabError as error:
            self._refuse(409, str(error))
            return
        self.finish(asdict(seat))

    def _refuse(self, status: int, why: str) -> None:
        self.set_status(status)
        self.finish({"error": why})
