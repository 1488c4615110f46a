"""``kafkalab doctor``: what this machine has, what it lacks, and the command that fixes each gap."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.findings import Finding, find_all
from kafkalab.cli.readiness import answers_in, readiness, show_answers, start_a_cluster
from kafkalab.errors import KafkaLabError

__all__ = ["add_parser", "examine"]

DESCRIPTION = """\
Show in a table what the course needs and what this machine has: Python and its packages,
Java, memory, disk, user and home folder, localhost, limits of the system, files of your own that hide packages,
ports, Kafka's jars, Spark's connector, the class-data archives, the command-line tools,
Docker. For each thing that is missing it names the one command that fixes it.

With --class it starts a cluster for a moment, too, and prints a single line to send to your teacher. The line says
whether the machine is ready. It names neither you nor your machine. The teacher puts the lines into a file, each behind
a name if that helps, and sees who isn't ready: kafkalab doctor --answers FILE

The exit status is 1 if something that the course needs is missing. Docker may be missing.
"""

MARKS = {"ok": "[green]✓", "missing": "[red]✗", "optional": "[yellow]–"}


def examine(findings: Iterable[Finding], console: Console) -> int:
    """Show the table, and return the exit status: 1 if something required is missing."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("What", no_wrap=True)
    table.add_column("Found", overflow="fold")
    table.add_column("To fix it", overflow="fold")
    missing = 0
    for finding in findings:
        missing += finding.state == "missing"
        table.add_row(
            MARKS[finding.state], finding.subject, finding.result, f"[bold]{finding.remedy}" if finding.remedy else ""
        )
    console.print(table, highlight=False)
    if missing:
        lacks = "1 thing" if missing == 1 else f"{missing} things"
        console.print(f"\nThe course lacks {lacks}. The last column says how to get each.", highlight=False)
        return 1
    console.print("\nThis machine has everything that the course needs. `kafkalab lab` opens it.", highlight=False)
    return 0


def add_parser(commands: Subparsers) -> None:
    """Add ``doctor`` to the command line."""
    parser = subcommand(commands, "doctor", _command, help="show what this machine has and lacks", description=DESCRIPTION)
    for_a_class = parser.add_mutually_exclusive_group()
    for_a_class.add_argument("--class", dest="one_line", action="store_true", help="print a line to send before a class")
    for_a_class.add_argument("--answers", metavar="FILE", type=Path, help="show who of a class is ready")


def _command(args: argparse.Namespace) -> int:
    if args.answers:
        try:
            return show_answers(answers_in(args.answers.read_text(encoding="utf-8")), Console())
        except (OSError, UnicodeDecodeError) as error:
            raise KafkaLabError(f"{args.answers} can't be read: {error}") from error
    if args.one_line:
        line, ready = readiness(find_all(), start_a_cluster)
        print(line)
        if not ready:
            print("`kafkalab doctor` says how to get what is missing.", file=sys.stderr)
        return 0 if ready else 1
    return examine(find_all(), Console())
