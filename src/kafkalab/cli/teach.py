"""``kafkalab teach``: run a class from the instructor's machine."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.existing_cluster import add_arguments, existing_cluster
from kafkalab.errors import KafkaLabError

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster
    from kafkalab.course.questions import Question

__all__ = ["add_parser"]

DESCRIPTION = """\
Start a class: a Kafka cluster of its own, a code with which learners join, and the board. It runs until you press
Ctrl-C, and then all that its seats wrote is deleted.

  kafkalab teach 02                           for learners on this machine: a server for a class, or a try
  kafkalab teach 02 --address 192.168.1.7     for learners in the same network; that is this machine's address there

With an address it listens there, with TLS and a user for each seat. Your firewall must let learners reach four ports:
PORT for the door, and the three after it for the brokers. Nothing else is reachable from elsewhere: the board listens
on this machine only.

Learners' machines call yours, never the other way round. Without the class they go on, and lose nothing.
"""

PORT = 29400
"""The door's port, when an address is given: one that can be named to a firewall."""


def add_parser(commands: Subparsers) -> None:
    """Add ``teach`` to the command line."""
    parser = subcommand(
        commands, "teach", _command, help="run a class: join code, polls, board", description=DESCRIPTION,
        interrupted="The class has ended.",
    )  # fmt: skip
    parser.add_argument(
        "chapters", metavar="CHAPTER", nargs="*", help="today's chapters, by number: their questions can be polled"
    )
    parser.add_argument(
        "--address", metavar="ADDRESS", help="this machine's address where learners reach it (default: only from here)"
    )
    parser.add_argument(
        "--port", type=int, metavar="PORT", help=f"the door's port (default with --address: {PORT}, else any free one)"
    )
    parser.add_argument(
        "--hours", type=float, default=10, metavar="HOURS", help="how long the join code is valid (default: 10)"
    )
    parser.add_argument("--seats", type=int, default=100, metavar="NUMBER", help="how many may join (default: 100)")
    add_arguments(parser, "use a cluster that runs already, with SASL_SSL, SCRAM-SHA-512 and ACLs, instead of starting one")
    parser.add_argument(
        "--registry", metavar="URL", default="", help="the schema registry beside that cluster, if there is one"
    )


def _command(args: argparse.Namespace) -> int:
    import ipaddress

    from kafkalab.cluster.ports import HOST

    console = Console(soft_wrap=True, highlight=False, markup=False)
    try:
        host = str(ipaddress.ip_address(args.address or HOST))
    except ValueError as error:
        raise KafkaLabError(
            f"--address is this machine's address in the class's network, such as 192.168.1.7, not {args.address}"
        ) from error
    port = args.port if args.port is not None else (PORT if args.address else 0)
    if not 0 <= port < 2**16 - 3:
        raise KafkaLabError(f"--port is a number from 0 to {2**16 - 4}, not {port}")
    if not 0 < args.hours <= 24 * 14:
        raise KafkaLabError(f"--hours is a number up to {24 * 14}, not {args.hours:g}")
    if args.seats < 1:
        raise KafkaLabError(f"--seats is a number from 1 on, not {args.seats}")
    return _teach(args, host, port, console)


def _teach(args: argparse.Namespace, host: str, port: int, console: Console) -> int:
    from kafkalab.classroom.teaching import Classroom

    asked = _questions(args.chapters)
    ended = threading.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: ended.set())
    began = time.monotonic()
    classroom = Classroom(
        host, port, hours=args.hours, seats=args.seats, existing=existing_cluster(args), registry=args.registry
    )
    board = None
    try:
        classroom.start(lambda sentence: console.print(f"{sentence} …"))
        console.print(f"\nThe class is open after {time.monotonic() - began:.0f} s. Learners type:\n")
        console.print(f"  kafkalab join {classroom.code}\n")
        from kafkalab.classroom.board import Board  # with Spark's modules: learners have the code meanwhile

        board = Board(
            classroom.cluster, classroom.schema_id, asked, lambda: classroom.seats.taken, classroom.topics.publish, _requirement
        )
        board.start()
        console.print(f"Your board, for you alone:    {board.url}\nThe wall, for the projector:  {board.wall_url}\n")
        console.print("Ctrl-C ends the class and deletes what its seats wrote.")
        missed: set[int] = set()
        while not ended.wait(1.0) and not board.ended:
            for sentence in _losses(classroom.cluster, missed):
                console.print(sentence)
    finally:
        if board is not None:
            board.stop()
        classroom.stop()
    console.print("The class has ended. What its seats wrote is deleted.")
    return 0


def _questions(chapters: Sequence[str]) -> list[Question]:
    from kafkalab.course import find_course
    from kafkalab.course.questions import questions

    content = find_course().content
    numbers = [f"{int(chapter):02}" if chapter.isdigit() else chapter[:2] for chapter in chapters]
    known = [stem[:2] for stem in content.chapter_titles]
    if unknown := [chapter for chapter, number in zip(chapters, numbers, strict=True) if number not in known]:
        raise KafkaLabError(f"there is no chapter {unknown[0]!r}; there are {', '.join(known)}")
    return questions(content, numbers)


def _requirement(check: str, number: int) -> str:
    """Return what a requirement says. Seats send the ids and numbers, so anything may come."""
    from kafkalab.checks.lab import find_check

    try:
        return find_check(check).requirements[number - 1].says if number > 0 else ""
    except (KafkaLabError, IndexError):
        return ""


def _losses(cluster: Cluster, missed: set[int]) -> Iterator[str]:
    """Yield a sentence for each broker that has ended since the last call."""
    for broker, state in cluster.nodes.states().items():
        if state == "dead" and broker not in missed:
            missed.add(broker)
            full = "No space left on device" in cluster.nodes.logs(broker)
            why = "The disk is full: free some space, and start the class again." if full else "The others carry on."
            yield f"Broker {broker} of the class has ended. {why}"
        elif state == "up":
            missed.discard(broker)
