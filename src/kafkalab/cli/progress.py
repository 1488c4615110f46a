"""``kafkalab progress``: show the learner's progress, export or delete it."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from kafkalab import progress
from kafkalab.cli.arguments import Subparsers, confirm, subcommand
from kafkalab.errors import KafkaLabError
from kafkalab.files import write_atomically

__all__ = ["add_parser"]

DESCRIPTION = """\
Show how far you are in each chapter, and how long it took. The course keeps that in a file on this machine and sends it
nowhere. Time goes from the first cell that you ran in a chapter or its labs to the last one. Gaps of more than 10
minutes don't count.

  kafkalab progress                        a line for each chapter
  kafkalab progress --html progress.html   a page to keep or print
  kafkalab progress --json progress.json   the file itself, to continue on another machine
  kafkalab progress --delete               start again from nothing, after asking

On the other machine, put the JSON file into a folder as progress.json and set KAFKALAB_PROGRESS to that folder.
"""


def add_parser(commands: Subparsers) -> None:
    """Add ``progress`` to the command line."""
    parser = subcommand(commands, "progress", _command, help="show, export or delete your progress", description=DESCRIPTION)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--html", type=Path, metavar="FILE", help="write it as a page")
    action.add_argument("--json", type=Path, metavar="FILE", help="write it as JSON")
    action.add_argument("--delete", action="store_true", help="delete it, after asking")
    parser.add_argument("-y", "--yes", action="store_true", help="don't ask")


def _command(args: argparse.Namespace) -> int:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    record = progress.load()
    if record == progress.ProgressRecord():
        if args.html or args.json:
            raise KafkaLabError("there's no progress to export yet. Check a lab, make a prediction or answer a quiz first")
        if args.delete:
            console.print("There's no progress to delete.")
            return 0
    if args.delete:
        return _delete(console, sure=args.yes)
    if args.json:
        return _write(args.json, progress.as_json(record), console)
    # Imported here: it takes a second, and the command line imports this module each time.
    from kafkalab.widgets.progress_data import chapters_of, labs_of_course, time_in_words
    from kafkalab.widgets.progress_table import progress_page

    chapters = chapters_of(record, labs_of_course())
    if args.html:
        return _write(args.html, progress_page(chapters), console)
    width = max(len(chapter.title) for chapter in chapters)
    for chapter in chapters:
        predicted = f" · {chapter.came_true} of {chapter.known} predictions came true" if chapter.known else ""
        took = f" · {time_in_words(chapter.seconds)}" if chapter.seconds else ""
        done = f"{chapter.done:>2} of {len(chapter.tasks)} done"
        console.print(f"{chapter.number}  {chapter.title:<{width}}  {done}{predicted}{took}")
    return 0


def _delete(console: Console, *, sure: bool) -> int:
    if not sure and not confirm("Delete all your progress: labs, quizzes, predictions and times?", console):
        console.print("Kept.")
        return 1
    try:
        progress.delete()
    except OSError as error:
        raise KafkaLabError(f"your progress can't be deleted: {error.strerror}: {error.filename}") from error
    console.print("Your progress is deleted.")
    return 0


def _write(path: Path, content: str, console: Console) -> int:
    if path.is_dir():
        raise KafkaLabError(f"{path} is a folder. Name a file, such as {path / 'progress.html'}")
    try:
        write_atomically(path, content)
    except OSError as error:
        raise KafkaLabError(f"{path} can't be written: {error.strerror}. Name a file in a folder that you can write") from error
    console.print(f"Your progress is in {path}.")
    return 0
