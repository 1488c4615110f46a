"""For tests of the pipeline on a cluster: its topics, and values as trucks send them."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping
from pathlib import Path

import fastavro

from kafkalab import Cluster
from kafkalab.paths import files_below
from support import create, put
from truck_pipeline import Event, Report, Settings, send_drivers
from truck_pipeline.events import SCHEMA

__all__ = ["HUGE", "SCHEMAS", "framed", "kept", "prepare", "send", "settings_file"]

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


def settings_file(folder: Path, client: Mapping[str, str], **tables: Mapping[str, str | int]) -> Path:
    """Write a file of settings for the command: of Kafka's client, and tables with theirs."""
    file = folder / f"{uuid.uuid4().hex}.toml"
    lines = ["[kafka]", *(f"{name} = {json.dumps(value)}" for name, value in client.items())]
    for table, settings in tables.items():
        lines += [f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items())]
    file.write_text("\n".join(lines))
    return file


def kept(checkpoint: Path) -> dict[Path, bytes]:
    """The files of a checkpoint that a start which is refused leaves as they are.

    Not those of the state: Spark writes snapshots and tidies up there from time to time, also when no query runs.
    """
    files = (path for path in files_below(checkpoint) if "state" not in path.relative_to(checkpoint).parts)
    return {path: path.read_bytes() for path in files}
