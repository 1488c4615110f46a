"""``kafkalab solution``: copy a lab's solution on request."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, add_workspace, confirm, subcommand
from kafkalab.course import open_workspace

__all__ = ["add_parser"]

DESCRIPTION = """\
Copy a lab's solution into your workspace, into its folder solutions, and say where it is.

  kafkalab solution 02_failsafe   a lab
  kafkalab solution 02_atu_ids    the lab that has this check

A class may get the course without solutions. When your teacher gives you a file with some, `kafkalab release FILE`
takes them up.

It asks first, because a hint often helps more: call hint("02_failsafe") in a cell.
"""


def add_parser(commands: Subparsers) -> None:
    """Add ``solution`` to the command line."""
    parser = subcommand(commands, "solution", _command, help="copy a lab's solution to you", description=DESCRIPTION)
    parser.add_argument("lab", metavar="LAB", help="the name of a lab or of its check")
    parser.add_argument("-y", "--yes", action="store_true", help="don't ask")
    add_workspace(parser)


def _command(args: argparse.Namespace) -> int:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    workspace = open_workspace(args.workspace)
    lab = Path(workspace.find_solution(args.lab)).stem  # report a wrong name before any question
    if not args.yes and not confirm(f"Show the solution of {lab}?", console):
        console.print("Not shown.")
        return 1
    path, kept = workspace.solution(lab)
    console.print(f"The solution is {path}.")
    for old in kept:
        console.print(f"Your earlier copy is kept in {old.name}, beside it.")
    return 0
