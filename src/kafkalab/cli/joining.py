"""``kafkalab join`` and ``kafkalab leave``: take a seat in a class, and give it up."""

from __future__ import annotations

import argparse
import time

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, confirm, subcommand
from kafkalab.errors import KafkaLabError

__all__ = ["add_parser"]

GOES_OUT = """\
What goes out while you're in a class, from your notebooks to your instructor's machine:
  - that a check has run: the lab's id, which requirements are met, how often it ran, how many hints are open
  - your predictions: the question's id and the option's number, or the number you typed; never text
  - what an experiment measured, as a number, for a question that the class polls
  - your Help and Done buttons, and once a minute the name of the chapter or lab that you work in
Never: your name, your user's or machine's name, code, outputs, messages of checks, paths, addresses.
Your seat is two random words. Only the instructor reads what a seat sends.
"""

JOIN = f"""\
Take a seat in your class. Your instructor has the code.

{GOES_OUT}
Everything works without the class, too: if its machine is gone, you go on, and what was to go out waits here.
The panel beside the notebook shows what has gone out, and you can leave there, or with `kafkalab leave`.
"""

LEAVE = """\
Leave your class. From then on nothing goes out, and what still waits here is deleted.

What your seat has sent stays with the class until it ends. Your own work and progress stay as they are. To come back,
join with the class's code again: you get another seat.
"""


def add_parser(commands: Subparsers) -> None:
    """Add ``join`` and ``leave`` to the command line."""
    joining = subcommand(commands, "join", _join, help="take a seat in your class", description=JOIN)
    joining.add_argument("code", metavar="CODE", nargs="+", help="the class's join code; spaces and hyphens don't matter")
    joining.add_argument(
        "--seat", metavar="NAME", default="", help="the seat you want: two words like brave-otter (default: any)"
    )
    joining.add_argument("-y", "--yes", action="store_true", help="don't ask")
    subcommand(commands, "leave", _leave, help="leave your class", description=LEAVE)


def _join(args: argparse.Namespace) -> int:
    from kafkalab.classroom import membership
    from kafkalab.classroom.join_code import read_join_code
    from kafkalab.classroom.joining import take_seat

    console = _console()
    code = read_join_code(" ".join(args.code))
    if (mine := membership.membership()) is not None:
        until = _clock(mine.expires)
        console.print(f"You have the seat {mine.seat} in a class already, until {until}. `kafkalab leave` gives it up.")
        return 1
    if not args.yes:
        console.print(GOES_OUT)
        if not confirm("Join?", console):
            console.print("You haven't joined, and nothing goes out.")
            return 1
    seat = take_seat(code, args.seat)
    try:
        membership.keep(seat)
    except OSError as error:
        raise KafkaLabError(f"your seat can't be kept: {error.strerror}: {error.filename}. Nothing goes out") from error
    console.print(f"Your seat is {seat.seat}, until {_clock(seat.expires)}. Notebooks that are open have joined, too.")
    return 0


def _leave(_: argparse.Namespace) -> int:
    from kafkalab.classroom import membership

    mine = membership.membership()
    membership.forget()
    _console().print(f"You have left the class, and given up the seat {mine.seat}." if mine else "You're in no class.")
    return 0


def _clock(when: float) -> str:
    return time.strftime("%H:%M" if when - time.time() < 12 * 3600 else "%Y-%m-%d %H:%M", time.localtime(when))


def _console() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False)
