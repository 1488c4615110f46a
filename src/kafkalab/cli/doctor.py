"""``kafkalab doctor``: what this machine has, what it lacks, and the command that fixes each gap."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.findings import Finding, find_all

__all__ = ["add_parser", "examine"]

DESCRIPTION = """\
Look at this machine and say in a table what the course needs and what was found: Python and its packages,
Java, memory, disk, user and home folder, localhost, limits of the system, files of your own that hide packages,
ports, Kafka's jars, Spark's connector, the class-data archives, the command-line tools,
Docker. For each thing that is missing it names the one command that mends it.

The exit status is 1 if something is missing. Docker may be missing: the course works without.
"""

MARKS = {"ok": "[green]✓", "missing": "[red]✗", "optional": "[yellow]–"}


def examine(findings: Iterable[Finding], console: Console) -> int:
    """Show the table, and return the exit status: 1 if something required is missing."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("What", no_wrap=True)
    table.add_column("Found", overflow="fold")
    table.add_column("To mend it", overflow="fold")
    missing = 0
    for finding in findings:
        missing += finding.state == "missing"
        table.add_row(MARKS[finding.state], finding.what, finding.found, f"[bold]{finding.mend}" if finding.mend else "")
    console.print(table, highlight=False)
    if missing:
        console.print(f"\n{missing} thing(s) that the course needs are missing; the last column mends them.", highlight=False)
        return 1
    console.print("\nAll that the course needs is here. `kafkalab lab` opens it.", highlight=False)
    return 0


def add_parser(commands: Subparsers) -> None:
    """Add ``doctor`` to the command line."""
    subcommand(commands, "doctor", _command, help="say what this machine has and lacks", description=DESCRIPTION)


def _command(args: argparse.Namespace) -> int:
    return examine(find_all(), Console())
