"""``kafkalab jump``: begin a chapter with a later section."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.lab import add_options, describe, open_lab
from kafkalab.conditions import home, require
from kafkalab.course import find_course, open_workspace
from kafkalab.course.jump import find_jump

__all__ = ["add_parser"]

DESCRIPTION = """\
Begin a chapter with a later section, because you missed the earlier ones or want to see this one again.

  kafkalab jump 02 --section 4   chapter 02 from section 4 on

You get a copy of the chapter that begins with the section. Its first cell starts the cluster and does what the section
builds on; that takes up to 30 s. Your own copy of the chapter stays as it is. If you jumped there before and worked in
that copy, it's kept, with today's date in its name.

If JupyterLab has your workspace open already, find the copy in its file list. Otherwise this command opens JupyterLab,
like `kafkalab lab`.
"""


def add_parser(commands: Subparsers) -> None:
    """Add ``jump`` to the command line."""
    parser = subcommand(commands, "jump", _command, help="begin a chapter with a later section", description=DESCRIPTION)
    parser.add_argument("chapter", metavar="CHAPTER", help="a chapter's number or name")
    parser.add_argument("--section", type=int, required=True, metavar="N", help="the section's number")
    add_options(parser)


def _command(args: argparse.Namespace) -> int:
    require(home)
    workspace = open_workspace(args.workspace)
    found = find_jump(args.chapter, args.section, find_course().content)
    update = workspace.update()
    kept = workspace.take_up(found.name, found.notebook())
    console = Console(soft_wrap=True, highlight=False, markup=False)
    for line in describe(update, workspace.folder):
        console.print(line)
    if kept:
        console.print(f"What you did in {found.name} before is kept in {kept.name}, beside it.")
    what = f"{found.name} begins with section {found.section.heading}."
    console.print(f"{what} Run its first cell, and go on below it." if found.first_cell else what)
    if _serves(workspace.folder):
        console.print("JupyterLab has your workspace open: choose the file in its list on the left.")
        return 0
    return open_lab(args, workspace, workspace.folder / found.name)


def _serves(folder: Path) -> bool:
    """Return whether a JupyterLab of this user serves a folder."""
    from jupyter_server.serverapp import list_running_servers  # takes a second to load

    return any(Path(server["root_dir"]).resolve() == folder.resolve() for server in list_running_servers())
