"""The HTTP endpoint: ``/metrics`` for Prometheus, ``/live`` and ``/ready`` for Kubernetes."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self

from prometheus_client import CONTENT_TYPE_LATEST

from truck_pipeline.health import Health
from truck_pipeline.metrics import Metrics

__all__ = ["Endpoint"]


class Endpoint:
    """Answers from a thread of its own while it's open.

    Parameters
    ----------
    address, port
        Where to listen. Port 0 takes any that is free.
    metrics, health
        What to answer.

    Attributes
    ----------
    url
        Where it listens.

    Raises
    ------
    ConnectionError
        When it can't listen there.
    """

    def __init__(self, address: str, port: int, metrics: Metrics, health: Health) -> None:
        try:
            self._server = ThreadingHTTPServer((address, port), _handler(metrics, health))
        except OSError as error:
            raise ConnectionError(f"metrics can't be offered at {address}:{port}: {error.strerror}") from None
        self.url = f"http://{address}:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, name="metrics and health", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(metrics: Metrics, health: Health) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path:
                case "/metrics":
                    self._answer(200, metrics.text(), CONTENT_TYPE_LATEST)
                case "/live" | "/ready":
                    good = health.live if self.path == "/live" else health.ready
                    self._answer(200 if good else 503, b"yes\n" if good else b"no\n")
                case _:
                    self._answer(404, b"/metrics, /live or /ready\n")

        def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no requests: probes come every few seconds."""

    return Handler
