"""Format a node's log folder without starting a JVM each time.

``kafka-storage format`` writes two files: ``meta.properties`` (the cluster and node that the folder belongs to) and
``bootstrap.checkpoint`` (the features that a new cluster starts with). The second is the same for every node and
cluster of a Kafka version, so the tool makes it once and kafkalab keeps it.
"""

from __future__ import annotations

import base64
import functools
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from kafkalab.distribution.jars import jars_dir
from kafkalab.distribution.shared import cache_folder, mark_used
from kafkalab.distribution.tools import run_tool
from kafkalab.errors import JavaError
from kafkalab.exits import exit_status
from kafkalab.files import write_atomically
from kafkalab.paths import cache_dir
from kafkalab.settings import format_properties

__all__ = ["bootstrap_checkpoint", "format_log_dir", "is_bootstrapped", "random_uuid"]

# Any valid configuration gives the same checkpoint.
_ANY_NODE = """\
process.roles=broker,controller
node.id=0
listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2
controller.listener.names=CONTROLLER
controller.quorum.voters=0@127.0.0.1:2
"""


def random_uuid() -> str:
    """Return a random id like ``kafka-storage random-uuid``: 16 bytes in URL-safe base 64, not starting with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def bootstrap_checkpoint(version: str | None = None) -> bytes:
    """Return the content of ``bootstrap.checkpoint`` for a Kafka version, made by its ``kafka-storage`` on first use.

    Raises
    ------
    JavaError
        If the tool fails. The message holds its reason.
    """
    path = _checkpoint(version)
    mark_used(path.parent)
    if not path.exists():
        write_atomically(cache_folder("archives", path.parent.name) / path.name, _formatted((), version))
    return path.read_bytes()


def is_bootstrapped(version: str | None = None) -> bool:
    """Return whether the cache has what `bootstrap_checkpoint` returns."""
    return _checkpoint(version).exists()


def _checkpoint(version: str | None) -> Path:
    return cache_dir() / "archives" / f"storage-{jars_dir('kafka', version).name}" / "bootstrap.checkpoint"


@functools.lru_cache(maxsize=8)  # the same for all nodes of a cluster
def _formatted(first_users: tuple[str, ...], version: str | None) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        config, logs, arguments = (Path(folder, name) for name in ("node.properties", "logs", "arguments"))
        config.write_text(_ANY_NODE + format_properties({"log.dirs": str(logs)}))
        words = ["format", "--cluster-id", random_uuid(), "--config", str(config)]
        for user in first_users:
            words += ["--add-scram", user]
        arguments.touch(mode=0o600)  # in a file, because others can see a process's arguments, and these hold passwords
        arguments.write_text("\n".join(words))
        result = run_tool("kafka-storage", f"@{arguments}", version=version)
        if result.returncode != 0:
            raise JavaError(
                f"kafka-storage could not format a folder ({exit_status(result.returncode)}): {result.stderr[-500:]}"
            )
        return (logs / "bootstrap.checkpoint").read_bytes()


def format_log_dir(
    folder: Path, cluster_id: str, node_id: int, first_users: Sequence[str] = (), *, version: str | None = None
) -> None:
    """Format a folder like ``kafka-storage format``, so that a node can start on it.

    Parameters
    ----------
    first_users
        SCRAM credentials that the cluster starts with, in the form of ``--add-scram``.
    version
        The Kafka version, by default the course's own. The cluster starts with the features of this version.
    """
    folder.mkdir(parents=True)
    checkpoint = _formatted(tuple(first_users), version) if first_users else bootstrap_checkpoint(version)
    (folder / "bootstrap.checkpoint").write_bytes(checkpoint)
    (folder / "meta.properties").write_text(
        f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={random_uuid()}\n"
    )
