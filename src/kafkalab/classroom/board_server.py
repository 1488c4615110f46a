"""The board's two pages, on loopback: the instructor's, behind a secret address, and the wall's."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from tornado import httpserver, netutil, web
from tornado.iostream import StreamClosedError

from kafkalab.cluster.ports import HOST
from kafkalab.errors import KafkaLabError, PortInUse

__all__ = ["BoardServer"]

_PAGES = files("kafkalab.classroom") / "pages"
_TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html"}
_TICK = 1.0  # seconds after which a view is looked at again, for minutes pass without an event
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}

View = Callable[[], Mapping[str, Any]]
Action = Callable[[Mapping[str, Any]], object]


class BoardServer:
    """Serves the pages in a thread of its own.

    The wall's page has no secret and takes no orders. The instructor's page, its events and its orders are at an address with
    a token, and anything else there is answered as a page that doesn't exist.

    Parameters
    ----------
    instructor, wall
        Return what the pages show, for JSON. They are called often, from the server's thread.
    actions
        What the instructor's buttons do, by name. Each gets the button's arguments. A `KafkaLabError` is shown on the page.
    port
        The port on loopback. With 0, any free one.
    """

    def __init__(self, instructor: View, wall: View, actions: Mapping[str, Action], port: int = 0) -> None:
        self._token = secrets.token_urlsafe(24)
        self._views = {"instructor": instructor, "wall": wall}
        self._actions = dict(actions)
        self._port = port
        self._changed: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The instructor's address, with the token. Whoever has it conducts the class."""
        return f"http://{HOST}:{self._port}/board/{self._token}/"

    @property
    def wall_url(self) -> str:
        """The wall's address."""
        return f"http://{HOST}:{self._port}/wall"

    def start(self) -> None:
        """Start to serve.

        Raises
        ------
        PortInUse
            If the port is taken.
        """
        try:
            sockets = netutil.bind_sockets(self._port, HOST)
        except OSError as error:
            raise PortInUse(
                f"the board can't listen on port {self._port}: {error.strerror}. End what listens there, or choose another port"
            ) from error
        self._port = sockets[0].getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(sockets, ready)), name="kafkalab-board-server", daemon=True
        )
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Stop to serve, and close all connections. Safe to call again."""
        if self._thread is not None and self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()

    def changed(self) -> None:
        """Show what has changed now, not with the next tick. Any thread may call it."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for event in self._changed:
            event.set()

    async def _serve(self, sockets: list[Any], ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        private = {"token": self._token}
        application = web.Application(
            [
                (r"/wall", _Page, {"name": "wall.html"}),
                (r"/wall/events", _Events, {"board": self, "view": "wall"}),
                (r"/board/([^/]*)/", _Page, {"name": "board.html", **private}),
                (r"/board/([^/]*)/events", _Events, {"board": self, "view": "instructor", **private}),
                (r"/board/([^/]*)/do/(\w+)", _Do, {"actions": self._actions, **private}),
                (r"/pages/([\w-]+\.(?:css|js))", _File),
            ],
            default_handler_class=_Missing,
            log_function=lambda _: None,
        )
        server = httpserver.HTTPServer(application)
        server.add_sockets(sockets)
        ready.set()
        await self._closing.wait()
        server.stop()
        self._wake()
        await server.close_all_connections()

    async def follow(self, view: str, send: Callable[[str], Any], closed: Callable[[], bool]) -> None:
        """Send a view's JSON now and whenever it has changed, until the connection or the server closes."""
        changed = asyncio.Event()
        self._changed.add(changed)
        last = ""
        try:
            while not closed() and not self._closing.is_set():
                changed.clear()
                if (shown := json.dumps(self._views[view]())) != last:
                    last = shown
                    await send(shown)
                try:
                    await asyncio.wait_for(changed.wait(), _TICK)
                except TimeoutError:
                    continue
        finally:
            self._changed.discard(changed)


class _Handler(web.RequestHandler):
    """Answers with the security headers, and knows only one token."""

    def initialize(self, token: str = "", **given: Any) -> None:
        self._token = token
        self._given = given

    def set_default_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.set_header(name, value)
        self.clear_header("Server")

    def prepare(self) -> None:
        host = self.request.host.partition(":")[0]
        token = self.path_args[0] if self._token else ""
        # A page of the web whose name points to loopback must not get in either.
        if host not in (HOST, "localhost") or not hmac.compare_digest(token.encode(), self._token.encode()):
            raise web.HTTPError(404)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.finish(f"{status_code}: there is nothing here. The instructor's terminal shows the board's address.")


class _Missing(_Handler):
    def prepare(self) -> None:
        raise web.HTTPError(404)


class _Page(_Handler):
    def get(self, *_: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish((_PAGES / self._given["name"]).read_bytes())


class _File(_Handler):
    def get(self, name: str) -> None:
        if not (_PAGES / name).is_file():
            raise web.HTTPError(404)
        self.set_header("Content-Type", f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8")
        self.finish((_PAGES / name).read_bytes())


class _Events(_Handler):
    _closed = False

    def on_connection_close(self) -> None:
        self._closed = True

    async def get(self, *_: str) -> None:
        self.set_header("Content-Type", "text/event-stream")

        async def send(shown: str) -> None:
            self.write(f"data: {shown}\n\n")
            await self.flush()

        try:
            await self._given["board"].follow(self._given["view"], send, lambda: self._closed)
        except StreamClosedError:
            return


class _Do(_Handler):
    async def post(self, _: str, name: str) -> None:
        actions: Mapping[str, Action] = self._given["actions"]
        if name not in actions:
            raise web.HTTPError(404)
        try:
            arguments = json.loads(self.request.body or b"{}")
            if not isinstance(arguments, dict):
                raise ValueError("arguments have names")
            await asyncio.to_thread(actions[name], arguments)
        except KafkaLabError as error:
            self.set_status(409)
            self.finish({"problem": str(error)})
        except (ValueError, KeyError, TypeError) as error:
            self.set_status(400)
            self.finish({"problem": f"the board doesn't understand this order: {error!r}. Load the page again"})
        else:
            self.finish({})
