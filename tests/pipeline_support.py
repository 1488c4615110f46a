"""For tests of the pipeline: topics, values as trucks send them, and a registry that answers who looks for a topic's schemas."""

from __future__ import annotations

import io
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

import fastavro

from kafkalab import Cluster
from kafkalab.paths import files_below
from pipeline import Event, Report, Settings, send_drivers
from pipeline.events import SCHEMA
from support import create, put

__all__ = ["HUGE", "SCHEMAS", "SmallRegistry", "framed", "kept", "prepare", "send"]

FIELDS = [field["name"] for field in json.loads(SCHEMA)["fields"]]
OLDER = json.loads(SCHEMA) | {"fields": [{"name": "driverAge", "type": "int"}, *json.loads(SCHEMA)["fields"]]}
HUGE = 3_000_000  # bytes, three times what a topic takes by default
SCHEMAS = {7: SCHEMA, 9: json.dumps(OLDER)}


def framed(event: Event, schema: int = 7, **more: object) -> bytes:
    """An event as a client of the registry writes it."""
    payload = io.BytesIO()
    fields = dict(zip(FIELDS, event, strict=True)) | more
    fastavro.schemaless_writer(payload, fastavro.parse_schema(json.loads(SCHEMAS[schema])), fields)
    return b"\0" + schema.to_bytes(4, "big") + payload.getvalue()


def prepare(cluster: Cluster, settings: Settings) -> None:
    """Create the topics, and send the drivers."""
    create(cluster, settings.positions, 2, max_message_bytes=str(HUGE))
    for topic in (settings.drivers, settings.dangerous, settings.dead_letters):
        create(cluster, topic, 2)
    send_drivers(cluster.client_config())


def send(cluster: Cluster, settings: Settings, reports: list[Report], schema: int = 7) -> None:
    more = {"driverAge": 33} if schema == 9 else {}
    values = [(str(r.driver), framed(r.event, schema, **more) if r.event else r.malformed, -1) for r in reports]
    put(cluster, settings.positions, values, message_max_bytes=HUGE)


def kept(checkpoint: Path) -> dict[Path, bytes]:
    """The files of a checkpoint that a start which is refused leaves as they are.

    Not those of the state: Spark writes snapshots and tidies up there from time to time, also when no query runs.
    """
    files = (path for path in files_below(checkpoint) if "state" not in path.relative_to(checkpoint).parts)
    return {path: path.read_bytes() for path in files}


class SmallRegistry:
    """Knows some schemas by their ids, for whichever subject it's asked; more may come. None at all: no such subject."""

    def __init__(self, schemas: dict[int, str] | None = None) -> None:
        self.schemas = dict(schemas or {})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._answerer())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, object]:
        """What a path gives: a status, and what goes into the body."""
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
