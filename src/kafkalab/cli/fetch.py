"""``kafkalab fetch``: download everything the course needs besides Python packages, ahead of time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.steps import Steps, Unit
from kafkalab.course import find_course
from kafkalab.distribution import Report, sweep

__all__ = ["Step", "add_parser", "describe", "fetch", "more_steps", "steps"]

_DESCRIPTION = """\
Fetch what the course needs besides Python packages:

{usual}

These are enough for {chapters}. Later chapters need more, and fetch it when they first use it. --all
fetches that now, {size} MB:

{more}

Each download is verified by its SHA-256. Class-data archives are made on this machine: with them, JVMs start in a
third of the time. A second call only verifies what is there. You can interrupt it at any time and call it again: it
continues. All clones of the course on this machine share the downloads, and what none of them has used for 30 days
is removed.

Afterwards {chapters} work offline. With --all, every chapter does.
"""


# Groups of jars that only some chapters need.
_EXTRAS = {
    "kdc": "Kerberos: a key distribution centre",
    "gssapi": "Kerberos: Java's part",
    "mirror": "Connect and MirrorMaker",
    "connect": "connectors",
    "debezium-postgres": "Debezium's connector for PostgreSQL",
    "ecj": "Eclipse's Java compiler",
    "mqtt-broker": "an MQTT broker",
    "mqtt-client": "an MQTT client in Java",
    "jdbc": "PostgreSQL's JDBC driver",
    "avro": "Avro for Connect",
    "streams": "Kafka Streams",
}


@dataclass(frozen=True)
class Step:
    """One thing to download or build.

    Attributes
    ----------
    title
        Its name.
    unit
        The unit of its progress.
    is_done
        Whether it's already there and complete.
    make
        Downloads or builds it.
    key
        What the course calls it when it says which chapters need it (`Course.needs`); empty for what most of them do.
    size
        Bytes to download.
    """

    title: str
    unit: Unit
    is_done: Callable[[], bool]
    make: Callable[[Report], object]
    key: str = ""
    size: int = 0


def _jars(title: str, group: str) -> Step:
    from kafkalab.distribution import ensure_jars, faulty_jars

    return Step(
        title, "MB", lambda: not faulty_jars(group), lambda report: ensure_jars(group, report), group, _bytes(group)
    )  # fmt: skip


def _bytes(group: str, version: str | None = None) -> int:
    from kafkalab.distribution import locked_jars

    return sum(jar.bytes for jar in locked_jars(group, version))


def _older_kafka(version: str) -> Step:
    from kafkalab.distribution import bootstrap_checkpoint, classpath, ensure_jars, faulty_jars, is_bootstrapped, kafka_archive

    def is_done() -> bool:
        whole = not faulty_jars("kafka", version) and kafka_archive(version).is_whole(thoroughly=True)
        return whole and is_bootstrapped(version)

    def make(report: Report) -> None:
        ensure_jars("kafka", report, version)
        kafka_archive(version).make(classpath(version))
        bootstrap_checkpoint(version)

    return Step(f"Kafka {version}", "MB", is_done, make, "older-kafka", _bytes("kafka", version))


def steps() -> list[Step]:
    """Return all steps, in an order in which later ones can use earlier ones."""
    from kafkalab.distribution import bootstrap_checkpoint, classpath, install_tools, is_bootstrapped, kafka_archive

    def spark_is_archived() -> bool:
        from kafkalab.spark.archive import spark_archive

        return spark_archive().is_whole(thoroughly=True)

    def archive_spark(report: Report) -> None:
        from kafkalab.spark import archive

        archive.spark_archive().make(archive.classpath(), report)

    def kafka_is_archived() -> bool:
        return kafka_archive().is_whole(thoroughly=True) and is_bootstrapped()

    def archive_kafka(report: Report) -> None:
        kafka_archive().make(classpath(), report)
        bootstrap_checkpoint()  # the first node would make it, but not where the cache can only be read

    return [
        _jars("Kafka's jars", "kafka"),
        _jars("Spark's Kafka connector", "spark"),
        Step("Kafka's class-data archive", "steps", kafka_is_archived, archive_kafka),
        # A few small scripts. Those that are already right are left alone.
        Step("command-line tools", "steps", lambda: False, lambda report: install_tools()),
        Step("Spark's class-data archive", "steps", spark_is_archived, archive_spark),
    ]


def more_steps() -> list[Step]:
    """Return the steps that only some chapters need."""
    from kafkalab.cluster.tier_jars import tier_jars
    from kafkalab.distribution import KAFKA_VERSION, KAFKA_VERSIONS
    from kafkalab.services.apicurio import is_prepared, prepare
    from kafkalab.services.own_plugins import OWN_PLUGINS

    def compile_own(report: Report) -> None:
        for plugin in OWN_PLUGINS.values():
            plugin.jars(report)
        tier_jars()

    return [
        Step("schema registry", "MB", is_prepared, prepare, "registry", _bytes("registry")),
        *(_jars(title, group) for group, title in _EXTRAS.items()),
        *(_older_kafka(version) for version in KAFKA_VERSIONS if version != KAFKA_VERSION),
        _jars("a remote tier in a folder", "tiered"),
        # A few small classes. Those that are compiled already are left alone.
        Step("the course's own classes in Java", "steps", lambda: False, compile_own, "own-classes"),
    ]


def fetch(console: Console, todo: list[Step]) -> None:
    """Run the steps that aren't done yet, and show the progress.

    Raises
    ------
    KafkaLabError
        If something can't be downloaded or built. Finished steps are kept.
    """
    with Steps(console, [step.title for step in todo]) as progress:
        for number, step in enumerate(todo):
            if not step.is_done():
                step.make(progress.begin(number, step.unit))
            progress.end(number, "ready")


def describe() -> str:
    """Return the text of ``kafkalab fetch --help``: every step, with the chapters that need it and the size of its download."""
    more, course = more_steps(), find_course()
    needs = course.needs()
    return _DESCRIPTION.format(
        chapters=course.usual(),
        usual="\n".join(_line(step) for step in steps()),
        more="\n".join(_line(step, needs[step.key]) for step in more),
        size=round(sum(step.size for step in more) / 1e6),
    )


def _line(step: Step, chapters: str = "") -> str:
    size = f"{max(1, round(step.size / 1e6)):4} MB" if step.size else "made here"
    return f"  {step.title:38}{size:12}{chapters}".rstrip()


def add_parser(commands: Subparsers) -> None:
    """Add ``fetch`` to the command line."""
    parser = subcommand(
        commands,
        "fetch",
        _command,
        help="fetch what the course needs; with --all, all of it works offline afterwards",
        description=describe,
        interrupted="Interrupted. What was fetched is kept. `kafkalab fetch` continues from there.",
    )
    parser.add_argument("--all", action="store_true", help="also fetch what only some chapters need")


def _command(args: argparse.Namespace) -> int:
    fetch(Console(), [*steps(), *more_steps()] if args.all else steps())
    sweep()
    return 0
