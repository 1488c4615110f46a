"""What the parsers of all subcommands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

__all__ = ["Subcommand", "Subparsers", "add_workspace", "confirm", "subcommand"]

# argparse has no public name for it, and its class takes a type parameter only in its stubs.
Subparsers: TypeAlias = "argparse._SubParsersAction[Subcommand]"


class Subcommand(argparse.ArgumentParser):
    """The parser of a subcommand. `describe` makes its description, once somebody asks for help."""

    describe: Callable[[], str]

    def format_help(self) -> str:
        """Return the text of ``--help``."""
        self.description = self.describe()
        return super().format_help()


def subcommand(
    commands: Subparsers,
    name: str,
    function: Callable[[argparse.Namespace], int],
    *,
    help: str,
    description: str | Callable[[], str],
    interrupted: str = "Interrupted.",
) -> Subcommand:
    """Add a subcommand.

    Parameters
    ----------
    function
        Runs it and returns the exit status.
    help
        One line for the list of commands.
    description
        The text above its options in its own ``--help``, or a function that returns it, if that takes a while.
    interrupted
        The message after Ctrl-C.
    """
    parser = commands.add_parser(name, help=help, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.describe = description if callable(description) else lambda: description
    parser.set_defaults(command=function, interrupted=interrupted)
    return parser


def confirm(question: str, console: Console) -> bool:
    """Ask a question, and return whether the answer is yes. If nobody can answer, that's a no."""
    console.print(f"{question} [y/N] ", end="", soft_wrap=True, markup=False, highlight=False)
    try:
        return console.input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--workspace``."""
    parser.add_argument(
        "--workspace", type=Path, metavar="DIR", help="your workspace (default: $KAFKALAB_WORKSPACE, or the one of this course)"
    )
