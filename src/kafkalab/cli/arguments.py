"""What the parsers of all subcommands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

__all__ = ["Subparsers", "add_workspace", "subcommand"]

# argparse has no public name for it, and its class takes a type parameter only in its stubs.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def subcommand(
    commands: Subparsers,
    name: str,
    function: Callable[[argparse.Namespace], int],
    *,
    help: str,
    description: str,
    interrupted: str = "Interrupted.",
) -> argparse.ArgumentParser:
    """Add a subcommand.

    Parameters
    ----------
    commands
        Where to add it.
    name
        Its name.
    function
        Runs it and returns the exit status.
    help
        One line for the list of commands.
    description
        The text above its options in its own ``--help``.
    interrupted
        The message after Ctrl-C.
    """
    parser = commands.add_parser(name, help=help, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(command=function, interrupted=interrupted)
    return parser


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--workspace``."""
    parser.add_argument(
        "--workspace", type=Path, metavar="DIR", help="your workspace (default: $KAFKALAB_WORKSPACE, or the one of this course)"
    )
