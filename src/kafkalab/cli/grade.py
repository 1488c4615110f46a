"""``kafkalab grade``: run submissions of labs, closed off, and write a row of marks for each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.errors import KafkaLabError

__all__ = ["add_parser", "describe"]

_DESCRIPTION = """\
Run submissions of labs, and write a CSV row for each: how many requirements it meets, the state of each requirement,
the seconds it took, and a reason if something came between. The course's own checks decide. What a notebook prints,
and the outputs stored in it, count for nothing.

FOLDER holds a notebook for each learner, or a folder for each. Every file and folder in it gets its row, whatever it
is: an empty file, an endless loop. A submission that is ended by a limit keeps the requirements it met until then.

{isolation}

Fetch everything first, with `kafkalab fetch --all`: a submission has no network. docs/teach/marks.md says more, also
about what somebody who is out to cheat can do.
"""


def describe() -> str:
    """Return the text of ``kafkalab grade --help``, with what keeps submissions apart on this machine."""
    from kafkalab.grading.isolation import describe as describe_isolation

    return _DESCRIPTION.format(isolation=describe_isolation())


def add_parser(commands: Subparsers) -> None:
    """Add ``grade`` to the command line."""
    parser = subcommand(
        commands,
        "grade",
        _command,
        help="run a class's submissions, closed off, and write their marks",
        description=describe,
        interrupted="Interrupted. The submissions were ended. The marks so far are in the file.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder with the submissions")
    parser.add_argument("--lab", metavar="LAB", help="the lab to grade, such as 02_failsafe (default: whose checks it calls)")
    parser.add_argument("--output", type=Path, default=Path("marks.csv"), metavar="FILE", help="default: marks.csv")
    parser.add_argument("-j", "--jobs", type=_positive, default=1, metavar="N", help="how many at once (default: 1)")
    parser.add_argument("--container", action="store_true", help="run each in a container of its own; needs Docker")
    parser.add_argument(
        "--image",
        default="",
        metavar="IMAGE",
        help="the container's image, with the course in it (default: this machine's programs)",
    )
    parser.add_argument(
        "--limit", type=_positive, metavar="SECONDS", help="how long each may take (default: 3 times the lab's solution)"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return number


def _command(args: argparse.Namespace) -> int:
    if args.image and not args.container:
        raise KafkaLabError("--image names the image of containers: add --container")
    from kafkalab.checks.lab import Lab, find_lab
    from kafkalab.files import write_atomically
    from kafkalab.grading.grade import Task, grade, prepare
    from kafkalab.grading.isolation import choose
    from kafkalab.grading.marks import Mark, as_csv
    from kafkalab.grading.session import run_submission
    from kafkalab.grading.submissions import find_submissions

    console = Console(soft_wrap=True, highlight=False, markup=False)
    lab = find_lab(args.lab) if args.lab else None
    checks = [check.id for check in lab.checks] if lab else []
    submissions = find_submissions(args.folder, lab_checks=checks, except_for=args.output.resolve())
    work = [prepare(submission, lab, args.limit) for submission in submissions]
    labs: dict[str, Lab] = {item.lab.stem: item.lab for item in work if isinstance(item, Task)} | (
        {lab.stem: lab} if lab else {}
    )
    isolation = choose(in_container=args.container, image=args.image).hiding(args.folder)
    console.print(f"{len(submissions)} submissions, each in {_WHERE[isolation.kind]}.")

    def keep(marks: Sequence[Mark]) -> None:
        write_atomically(args.output, as_csv(marks, labs))

    def done(mark: Mark) -> None:
        of = sum(len(check.requirements) for check in labs[mark.lab].checks) if mark.lab in labs else 0
        found = f"{mark.met} of {of} requirements" if of else "no lab"
        console.print(f"{mark.submission}  {found}, {mark.seconds:.0f} s{'. ' + mark.reason if mark.reason else ''}")

    if any(isinstance(item, Task) for item in work):
        _fetch(console)

    def run(task: Task, interrupted: Event) -> Mark:
        return run_submission(task.submission, task.lab, task.steps, isolation, task.limits, interrupted)

    grade(work, run, at_once=args.jobs, keep=keep, done=done)
    console.print(f"The marks are in {args.output}.")
    return 0


_WHERE = {
    "namespaces": "namespaces of its own",
    "container": "a container of its own",
    "process group": "a process group of its own, which can reach your files and the network (see --help)",
}


def _fetch(console: Console) -> None:
    """See to it that a submission finds what it needs without a network."""
    from kafkalab.cli.fetch import fetch, more_steps, steps
    from kafkalab.distribution import put_tools_on_path

    put_tools_on_path()
    if missing := [step for step in steps() if not step.is_done()]:
        fetch(console, missing)
    try:
        if more := [step for step in more_steps() if not step.is_done()]:
            fetch(console, more)
    except KafkaLabError as error:
        print(f"kafkalab: {error}\nLabs of later chapters need that, and will fail without.", file=sys.stderr)
