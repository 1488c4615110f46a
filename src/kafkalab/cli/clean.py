"""``kafkalab clean``: end what a crash left behind, and delete the cache on request."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from pathlib import Path

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, confirm, subcommand
from kafkalab.distribution.shared import UNUSED_DAYS, sweep
from kafkalab.errors import BackendUnavailable, KafkaLabError
from kafkalab.lifeline import abandoned_runs, claimed_runs, marked_processes, reap
from kafkalab.paths import cache_dir, files_below

__all__ = ["add_parser", "clean_cache", "clean_runs"]

DESCRIPTION = """\
End what crashed runs left: broker processes, containers, temporary data. A watcher normally cleans up as soon
as the notebook that started them ends. Call this after a power cut, or if somebody killed the watcher. It
doesn't touch clusters whose notebook still runs.

It also deletes what nobody has used for 30 days: jars and class-data archives of earlier versions of the
course, and commands of environments that are gone.

With --cache, also delete all that `kafkalab fetch` fetched. Your progress in the labs is kept.
"""


def clean_runs(console: Console) -> int:
    """End every run whose owner is gone, print that, and return the number of these runs.

    Raises
    ------
    BackendUnavailable
        If a run has containers, but no Docker engine answers to remove them. All other runs are ended.
    """
    count, unavailable = 0, None
    for run in abandoned_runs():
        processes = len(marked_processes(run.id))
        try:
            reap(run)
        except BackendUnavailable as error:
            unavailable = error
            continue
        count += 1
        console.print(f"ended {run.id}: {processes} process(es), its data and containers", soft_wrap=True, highlight=False)
    if unavailable:
        raise unavailable
    if not count:
        console.print("Nothing was left behind.")
    return count


def clean_cache(console: Console, *, sure: bool) -> bool:
    """Delete the cache, and return whether that was done. Ask first, unless `sure`.

    Raises
    ------
    KafkaLabError
        While clusters run with jars from the cache.
    """
    folder = cache_dir()
    if not folder.exists():
        console.print("The cache is empty.")
        return True
    if live := claimed_runs():
        raise KafkaLabError(f"these runs still use the cache: {', '.join(live)}; shut their notebooks down first")
    megabytes = _bytes_below(folder) / 1e6
    question = f"Delete {folder} ({megabytes:.0f} MB)? `kafkalab fetch` would have to fetch it again."
    if not sure and not confirm(question, console):
        console.print("Kept.")
        return False
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise KafkaLabError(f"the cache can't be deleted: {error.strerror}: {error.filename or folder}") from error
    console.print(f"Freed {megabytes:.0f} MB.", highlight=False)
    return True


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in files_below(folder):
        with contextlib.suppress(FileNotFoundError):  # another process fetches just now
            total += path.lstat().st_size
    return total


def add_parser(commands: Subparsers) -> None:
    """Add ``clean`` to the command line."""
    parser = subcommand(
        commands, "clean", _command, help="end what crashed runs left; free the cache on request", description=DESCRIPTION
    )
    parser.add_argument("--cache", action="store_true", help="also delete what was fetched, after asking")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _command(args: argparse.Namespace) -> int:
    console = Console()
    clean_runs(console)
    if args.cache:
        return 0 if clean_cache(console, sure=args.yes) else 1
    if freed := sweep():
        console.print(f"Freed {freed / 1e6:.0f} MB that nobody had used for {UNUSED_DAYS} days.", highlight=False)
    return 0
