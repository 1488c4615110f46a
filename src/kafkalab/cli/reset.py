"""``kafkalab reset``: make a fresh copy of a chapter or lab."""

from __future__ import annotations

import argparse

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, add_workspace, subcommand
from kafkalab.course import open_workspace

__all__ = ["add_parser"]

DESCRIPTION = """\
Put a fresh copy of a chapter or lab into your workspace. What you had stays beside it, with today's date in its name.

  kafkalab reset 02_failsafe   a lab
  kafkalab reset 02_atu_ids    the lab that has this check
  kafkalab reset 2             chapter 02
"""


def add_parser(commands: Subparsers) -> None:
    """Add ``reset`` to the command line."""
    parser = subcommand(commands, "reset", _command, help="start a chapter or lab afresh", description=DESCRIPTION)
    parser.add_argument("notebook", metavar="LAB|CHAPTER", help="the name of a lab, check or chapter, or a chapter's number")
    add_workspace(parser)


def _command(args: argparse.Namespace) -> int:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    fresh, kept = open_workspace(args.workspace).reset(args.notebook)
    console.print(f"{fresh} is fresh.")
    if kept:
        console.print(f"Yours is kept in {kept.name}, beside it.")
    return 0
