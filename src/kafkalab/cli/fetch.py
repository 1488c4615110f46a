"""``kafkalab fetch``: download everything the course needs besides Python packages, ahead of time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.steps import Steps, Unit
from kafkalab.distribution import Report, sweep

__all__ = ["Step", "add_parser", "fetch", "more_steps", "steps"]

DESCRIPTION = """\
Fetch what the course needs beside Python packages:

  Kafka's jars                downloaded, each verified by its SHA-256
  Spark's Kafka connector     downloaded, verified likewise
  Kafka's class-data archive  made on this machine: brokers then start in a third of the time
  command-line tools          kafka-topics, kafka-console-consumer and the others
  Spark's class-data archive  made on this machine, too: it saves seconds of each start

With --all also what single chapters need, which else is fetched when it is first used:

  schema registry             chapter 6 (159 MB)
  Kerberos                    one of chapter 7's labs
  Connect and MirrorMaker     chapter 8
  an older Kafka              chapter 12, which upgrades it
  a remote tier in a folder   chapter 12, too

What is there already is verified and kept: a second call takes a moment. It can be interrupted at any time;
call it again and it goes on. All clones of the course on this machine share it; what none of them has used for
30 days is removed. Afterwards the course works offline: with --all every chapter, without it all but these.
"""


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
    """

    title: str
    unit: Unit
    is_done: Callable[[], bool]
    make: Callable[[Report], object]


def _jars(title: str, group: str) -> Step:
    from kafkalab.distribution import ensure_jars, faulty_jars

    return Step(title, "MB", lambda: not faulty_jars(group), lambda report: ensure_jars(group, report))


def _older_kafka(version: str) -> Step:
    from kafkalab.distribution import classpath, ensure_jars, faulty_jars, kafka_archive

    def is_done() -> bool:
        return not faulty_jars("kafka", version) and kafka_archive(version).is_whole(thoroughly=True)

    def make(report: Report) -> None:
        ensure_jars("kafka", report, version)
        kafka_archive(version).make(classpath(version))

    return Step(f"Kafka {version}", "MB", is_done, make)


def steps() -> list[Step]:
    """Return all steps, in an order in which later ones can use earlier ones."""
    from kafkalab.distribution import classpath, install_tools, kafka_archive

    def spark_is_archived() -> bool:
        from kafkalab.spark.archive import spark_archive

        return spark_archive().is_whole(thoroughly=True)

    def archive_spark(report: Report) -> None:
        from kafkalab.spark import archive

        archive.spark_archive().make(archive.classpath(), report)

    def archive_kafka(report: Report) -> None:
        kafka_archive().make(classpath(), report)

    return [
        _jars("Kafka's jars", "kafka"),
        _jars("Spark's Kafka connector", "spark"),
        Step("Kafka's class-data archive", "steps", lambda: kafka_archive().is_whole(thoroughly=True), archive_kafka),
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
        Step("schema registry", "MB", is_prepared, prepare),
        _jars("Kerberos: a key distribution centre", "kdc"),
        _jars("Kerberos: Java's part", "gssapi"),
        _jars("Connect and MirrorMaker", "mirror"),
        _jars("connectors", "connect"),
        _jars("Debezium's connector for PostgreSQL", "debezium-postgres"),
        _jars("Eclipse's Java compiler", "ecj"),
        _jars("an MQTT broker", "mqtt-broker"),
        _jars("an MQTT client in Java", "mqtt-client"),
        _jars("PostgreSQL's JDBC driver", "jdbc"),
        _jars("Avro for Connect", "avro"),
        _jars("Kafka Streams", "streams"),
        *(_older_kafka(version) for version in KAFKA_VERSIONS if version != KAFKA_VERSION),
        _jars("a remote tier in a folder", "tiered"),
        # A few small classes. Those that are compiled already are left alone.
        Step("the course's own classes in Java", "steps", lambda: False, compile_own),
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


def add_parser(commands: Subparsers) -> None:
    """Add ``fetch`` to the command line."""
    parser = subcommand(
        commands,
        "fetch",
        _command,
        help="fetch all that the course needs, so that it works offline afterwards",
        description=DESCRIPTION,
        interrupted="Interrupted. What was fetched is kept; `kafkalab fetch` goes on from there.",
    )
    parser.add_argument("--all", action="store_true", help="also what single chapters need (about 200 MB more)")


def _command(args: argparse.Namespace) -> int:
    fetch(Console(), [*steps(), *more_steps()] if args.all else steps())
    sweep()
    return 0
