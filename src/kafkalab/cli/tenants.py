"""``kafkalab tenants``: let learners into a Kafka cluster that they share, and out again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.existing_cluster import add_arguments, existing_cluster
from kafkalab.errors import KafkaLabError

__all__ = ["add_parser"]

DESCRIPTION = """\
Let learners into a cluster that they share, or out again. It needs SCRAM users and ACLs (TLS, too, beyond your machine).

  kafkalab tenants add amber brisk --bootstrap-servers kafka.example:9093 --client-settings admin.json --output logins
  kafkalab tenants remove amber brisk --bootstrap-servers kafka.example:9093 --client-settings admin.json

Each learner gets a user and a prefix: amber may create, write, read and delete topics whose names begin with "amber.", and
use such consumer groups and transactional ids. amber sees nothing else of the cluster, and nobody sees what amber has.
`add` writes a file of client settings for each, which holds the password. In a notebook:

  import json
  cluster = Cluster.attached(**json.load(open("amber.json"))).start()

`remove` takes user and rights away, and deletes the learner's topics.
"""


def add_parser(commands: Subparsers) -> None:
    """Add ``tenants`` to the command line."""
    parser = subcommand(
        commands, "tenants", _command, help="let learners into a cluster that they share", description=DESCRIPTION
    )
    parser.add_argument("action", choices=("add", "remove"), help="let them in, or out and delete their topics")
    parser.add_argument("names", metavar="NAME", nargs="+", help="a learner: lower-case letters, digits and hyphens")
    add_arguments(parser, "the cluster that they share", required=True)
    parser.add_argument(
        "--output", type=Path, default=Path(), metavar="FOLDER", help="where `add` writes a file for each (default: here)"
    )


def _command(args: argparse.Namespace) -> int:
    from kafkalab.classroom.tenants import Tenants, prefix_of
    from kafkalab.security.files import write_private

    for name in args.names:
        prefix_of(name)  # refuse all before the first is let in
    cluster = existing_cluster(args)
    assert cluster is not None, "--bootstrap-servers is required"
    console = Console(soft_wrap=True, highlight=False, markup=False)
    with cluster:
        tenants = Tenants(cluster)
        for name in args.names:
            if args.action == "remove":
                console.print(f"{name} is locked out. Topics deleted: {tenants.remove(name)}")
                continue
            settings = {key.replace(".", "_"): value for key, value in tenants.add(name).items()}
            file = args.output / f"{name}.json"
            try:
                args.output.mkdir(parents=True, exist_ok=True)
                write_private(file, json.dumps(settings, indent=1))
            except OSError as error:
                raise KafkaLabError(f"{error.filename} can't be written: {error.strerror}. Add {name} again") from error
            console.print(f"{name} is let in: {file}")
    return 0
