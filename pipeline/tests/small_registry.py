"""A schema registry for tests."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self

__all__ = ["SmallRegistry"]


class SmallRegistry:
    """Knows some schemas by their ids, for whichever subject it's asked; more may come. None at all: no such subject.

    It listens at a free port, or at the one that it's given.
    """

    def __init__(self, schemas: dict[int, str] | None = None, port: int = 0) -> None:
        self.schemas = dict(schemas or {})
        self.asked = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._answerer())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, object]:
        """What a path gives: a status, and what goes into the body."""
        self.asked += 1
        [(subject, version)] = re.findall(r"/subjects/([^/?]+)/versions/?(\d*)", path)
        if not self.schemas:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if not version:
            return 200, list(range(1, len(self.schemas) + 1))
        number, schema = list(self.schemas.items())[int(version) - 1]
        return 200, {"subject": subject, "version": int(version), "id": number, "schema": schema}

    def _answerer(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Answerer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, content = registry.answer(self.path)
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Answerer
