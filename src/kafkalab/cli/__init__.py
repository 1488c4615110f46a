"""The command `kafkalab`: check this machine, download what the course needs, open it, run it, clean up."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence
from importlib.metadata import version

from kafkalab.cli import (
    bundle,
    clean,
    doctor,
    fetch,
    grade,
    joining,
    jump,
    lab,
    portable,
    progress,
    reset,
    run,
    solution,
    teach,
    tenants,
)
from kafkalab.cli.arguments import Subcommand
from kafkalab.errors import KafkaLabError

__all__ = ["build_parser", "main"]

# Remedies by error number, for whatever a command was doing.
ROOM = "Free some space there, or name another folder: KAFKALAB_CACHE, KAFKALAB_PROGRESS, KAFKALAB_WORKSPACE and TMPDIR do that"
WRITABLE = "Name a folder that you can write: KAFKALAB_CACHE, KAFKALAB_PROGRESS, KAFKALAB_WORKSPACE and TMPDIR do that"
REFUSED = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), ROOM),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), WRITABLE),
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM), "`kafkalab doctor` looks at this machine's limits"
    ),
}

INTERRUPTED = 130  # what a shell reports for a command that Ctrl-C ended

_COMMANDS = (
    lab,
    jump,
    reset,
    solution,
    progress,
    portable,
    joining,
    doctor,
    fetch,
    run,
    clean,
    teach,
    tenants,
    bundle,
    grade,
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line. Each subcommand adds its own part."""
    parser = argparse.ArgumentParser(
        prog="kafkalab",
        description="A hands-on Kafka course: real clusters from a notebook cell, broken on purpose.",
        epilog="`kafkalab COMMAND --help` tells more about each. New here? `kafkalab lab` opens the course.",
    )
    parser.add_argument("--version", action="version", version=f"kafkalab {version('kafkalab')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Subcommand)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kafkalab`, and return its exit status: 0 if all is well, 1 if not, 130 after Ctrl-C."""
    args = build_parser().parse_args(argv)
    try:
        status: int = args.command(args)
        return status
    except KafkaLabError as error:
        print(f"kafkalab: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        print(f"kafkalab: {error.strerror}: {error.filename or 'no file named'}. {REFUSED[error.errno]}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nkafkalab: {args.interrupted}", file=sys.stderr)
        return INTERRUPTED
