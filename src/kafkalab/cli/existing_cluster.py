"""Arguments that name a cluster which runs already, and an administrator of it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from kafkalab.errors import KafkaLabError

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["add_arguments", "existing_cluster"]


def add_arguments(parser: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    """Add ``--bootstrap-servers`` and ``--client-settings``."""
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", required=required, help=what)
    parser.add_argument(
        "--client-settings", type=Path, metavar="FILE", help="JSON: librdkafka settings of an administrator of that cluster"
    )


def existing_cluster(args: argparse.Namespace) -> Cluster | None:
    """Return the cluster that the arguments name, or None if they name none.

    Raises
    ------
    KafkaLabError
        If the file with client settings can't be read, or there's no cluster for them.
    """
    if not args.bootstrap_servers:
        if args.client_settings:
            raise KafkaLabError("--client-settings belong to a cluster that runs already; name it with --bootstrap-servers")
        return None
    from kafkalab.cluster import Cluster

    settings: dict[str, object] = {}
    if args.client_settings:
        try:
            settings = json.loads(args.client_settings.read_text())
            if not isinstance(settings, dict):
                raise ValueError("it's no JSON object")
        except (OSError, ValueError) as error:
            raise KafkaLabError(f"{args.client_settings} isn't a file of client settings: {error}") from error
    named = {name.replace(".", "_"): value for name, value in settings.items()}
    named.pop("bootstrap_servers", None)  # the argument names them
    return Cluster.attached(args.bootstrap_servers, **named)
