"""What `kafkalab doctor` checks on a machine: one function per check, each with the command that fixes a gap."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from kafkalab.conditions import CONDITIONS
from kafkalab.course import find_course
from kafkalab.errors import KafkaLabError
from kafkalab.paths import cache_dir, runs_dir

__all__ = ["CHECKS", "Finding", "State", "find_all"]

State = Literal["ok", "missing", "optional"]

PYTHONS = ((3, 11), (3, 13))  # oldest and newest
IMAGE = "apache/kafka"
USUAL_PORTS = (9092, 9093, 9094)

# Three brokers, Spark, JupyterLab and a kernel.
MEMORY_NEEDED = 1_700_000_000
DISK_NEEDED = 1_000_000_000
FETCH = "kafkalab fetch"
INSTALL = "make setup"
COMMANDS = ("curl", "openssl")  # of the system, which single notebooks call


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's table.

    Attributes
    ----------
    what
        What was checked.
    state
        ``ok``, ``missing`` if the course needs it, or ``optional`` if it's missing and the course works without it.
    found
        The result in words.
    mend
        The command or step that fixes it, or empty if all is well.
    """

    subject: str
    state: State
    result: str
    remedy: str = ""


def python() -> Finding:
    """Check the Python that runs this."""
    version = platform.python_version()
    if PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        return Finding("Python", "ok", version)
    supported = " to ".join(".".join(map(str, version)) for version in PYTHONS)
    return Finding(
        "Python", "missing", f"{version}; the course needs {supported}", f"make setup PYTHON=python{PYTHONS[1][0]}.12"
    )


def packages() -> Finding:
    """Check the Python packages that kafkalab requires."""
    from packaging.requirements import Requirement

    wrong = []
    declared = [Requirement(text) for text in metadata.requires("kafkalab") or ()]
    requirements = [item for item in declared if not item.marker or item.marker.evaluate({"extra": ""})]
    for requirement in requirements:
        try:
            if not requirement.specifier.contains(metadata.version(requirement.name), prereleases=True):
                wrong.append(f"{requirement.name} {metadata.version(requirement.name)}, not {requirement.specifier}")
        except metadata.PackageNotFoundError:
            wrong.append(f"no {requirement.name}")
    if wrong:
        return Finding("Python packages", "missing", "; ".join(wrong), INSTALL)
    return Finding("Python packages", "ok", f"all {len(requirements)}, confluent-kafka {metadata.version('confluent-kafka')}")


def java() -> Finding:
    """Check the Java that runs Kafka and Spark."""
    from kafkalab.distribution import java_command, java_version, spark_java_command

    remedy = "unset KAFKALAB_JAVA_HOME" if "KAFKALAB_JAVA_HOME" in os.environ else INSTALL
    try:
        command = java_command()
        spark_java_command()
    except KafkaLabError as error:
        return Finding("Java", "missing", str(error), remedy)
    whose = "named by KAFKALAB_JAVA_HOME" if "KAFKALAB_JAVA_HOME" in os.environ else "the course's own"
    return Finding("Java", "ok", f"version {java_version(command)}, {whose}")


def machine(subject: str) -> Finding:
    """Check the conditions of one line of `CONDITIONS`."""
    if problems := [problem for condition in CONDITIONS[subject] if (problem := condition())]:
        remedies = "; ".join(problem.remedy for problem in problems)
        return Finding(subject, "missing", "; ".join(problem.description for problem in problems), remedies)
    return Finding(subject, "ok", "as it should be")


def own_files() -> Finding:
    """Check for files of the learner's that hide packages, or that JupyterLab can't read."""
    from kafkalab.cli.own_jupyter import broken_settings
    from kafkalab.shadows import hiding_files

    folders = {Path.cwd(), Path(os.environ.get("KAFKALAB_WORKSPACE", Path.cwd())) / "notebooks"}
    wrong = [*broken_settings(), *(line for folder in sorted(folders) for line in hiding_files(folder))]
    if wrong:
        return Finding("Your own files", "missing", " ".join(wrong), "rename or fix them")
    return Finding("Your own files", "ok", "none hides a package, and JupyterLab can read your settings")


def progress() -> Finding:
    """Check that the learner's progress can be kept."""
    from kafkalab.paths import progress_dir

    return disk("Your progress", progress_dir(), "free some, or: export KAFKALAB_PROGRESS=/another/folder", needed=1_000_000)


def memory() -> Finding:
    """Check free memory, of the machine or of the container that this runs in."""
    import psutil

    from kafkalab.resources import available_memory

    free, total = available_memory(), psutil.virtual_memory().total
    result = f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB"
    if free < psutil.virtual_memory().available * 0.95:  # the two are measured one after the other
        result += " (a container's limit is nearer than the machine's)"
    if free >= MEMORY_NEEDED:
        return Finding("Memory", "ok", result)
    return Finding(
        "Memory",
        "missing",
        f"{result}; three brokers and Spark need {MEMORY_NEEDED / 1e9:.1f} GB",
        "shut other notebooks' kernels down, then: kafkalab clean",
    )


def disk(subject: str, folder: Path, remedy: str, needed: int = DISK_NEEDED) -> Finding:
    """Check free disk where a folder is or will be."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    result = f"{free / 1e9:.1f} GB free, {folder}"
    if not (os.access(existing, os.W_OK) and existing.is_dir()):
        return Finding(subject, "missing", f"{folder} cannot be written", remedy)
    if free < needed:
        return Finding(subject, "missing", f"{result}; the course needs {needed / 1e9:g} GB", remedy)
    return Finding(subject, "ok", result)


def cache_disk() -> Finding:
    """Check the disk for downloads."""
    return disk("Disk for the cache", cache_dir(), "free some, or: export KAFKALAB_CACHE=/another/folder")


def runs_disk() -> Finding:
    """Check the disk for the brokers' data."""
    return disk("Disk for brokers' data", runs_dir(), "free some, or: export TMPDIR=/another/folder")


def ports() -> Finding:
    """Check that ports are available on loopback, and which of Kafka's usual ones are taken."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        return Finding("Ports", "missing", f"none can be bound on 127.0.0.1 ({error.strerror})", "allow listening on 127.0.0.1")
    taken = [str(port) for port in USUAL_PORTS if _is_taken(port)]
    if taken:
        return Finding("Ports", "ok", f"any free ones; {', '.join(taken)} of Kafka's usual ones taken")
    return Finding("Ports", "ok", f"any free ones; Kafka's usual {USUAL_PORTS[0]} to {USUAL_PORTS[-1]} are free too")


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def kafka_jars() -> Finding:
    """Check that Kafka's jars are complete and unaltered."""
    return _jars("Kafka's jars", "kafka")


def spark_connector() -> Finding:
    """Check that the jars of Spark's Kafka connector are complete and unaltered."""
    return _jars("Spark's Kafka connector", "spark")


def _jars(subject: str, group: str) -> Finding:
    from kafkalab.distribution import KAFKA_VERSION, faulty_jars, locked_jars

    jars, faulty = locked_jars(group), faulty_jars(group)
    megabytes = sum(jar.bytes for jar in faulty) / 1e6
    if faulty:
        return Finding(subject, "missing", f"{len(faulty)} of {len(jars)} missing or damaged ({megabytes:.0f} MB)", FETCH)
    return Finding(subject, "ok", f"{len(jars)}, verified" + (f", version {KAFKA_VERSION}" if group == "kafka" else ""))


def class_data_archives() -> Finding:
    """Check the archives that make JVMs start fast: Kafka's must be there, and none may be damaged."""
    from kafkalab.distribution import KAFKA_VERSIONS, faulty_jars, kafka_archive
    from kafkalab.distribution.registry import registry_archive

    subject = "Class-data archives"
    usual, of_single_chapters = [kafka_archive()], [*map(kafka_archive, KAFKA_VERSIONS[1:]), registry_archive()]
    if not faulty_jars("spark"):  # Spark's would download them
        with contextlib.suppress(ImportError):  # another line says that PySpark is missing
            from kafkalab.spark.archive import spark_archive

            usual.append(spark_archive())
    try:
        made = [archive for archive in (*usual, *of_single_chapters) if archive.exists()]
    except KafkaLabError:
        return Finding(subject, "missing", "cannot be used without Java", INSTALL)
    if kafka_archive() not in made:
        return Finding(subject, "missing", "not made yet: brokers would start slowly", FETCH)
    if damaged := [archive for archive in made if not archive.is_whole(thoroughly=True)]:
        names = ", ".join(archive.name for archive in damaged)
        remedy = FETCH if set(damaged) <= set(usual) else f"{FETCH} --all"
        return Finding(subject, "missing", f"damaged: {names}; a JVM could crash", remedy)
    size = sum(archive.path.stat().st_size for archive in made) / 1e6
    return Finding(subject, "ok", f"{', '.join(archive.name for archive in made)}; {size:.0f} MB, verified")


def tools() -> Finding:
    """Check Kafka's command-line tools."""
    from kafkalab.distribution import TOOLS, tools_dir

    try:
        installed = sum(os.access(tools_dir() / name, os.X_OK) for name in TOOLS)
    except KafkaLabError as error:  # no Java, or no cache
        return Finding("Command-line tools", "missing", str(error), FETCH)
    if installed < len(TOOLS):
        return Finding("Command-line tools", "missing", f"{installed} of {len(TOOLS)}", FETCH)
    return Finding("Command-line tools", "ok", f"all {installed}, in {tools_dir()}")


def commands() -> Finding:
    """Check the system's commands that single notebooks call."""
    lacking = [name for name in COMMANDS if not shutil.which(name)]
    if lacking:
        needs = find_course().needs()
        result = ", ".join(f"no {name} ({needs[name]} calls it)" for name in lacking)
        return Finding("Other commands (optional)", "optional", result, f"install {' and '.join(lacking)} as your system does")
    return Finding("Other commands (optional)", "ok", ", ".join(COMMANDS))


def docker_engine() -> Finding:
    """Check for a Docker engine, and Kafka's image in it."""
    from docker.client import DockerClient
    from docker.errors import DockerException

    try:
        client = DockerClient.from_env(timeout=5)
    except DockerException:
        return Finding("Docker (optional)", "optional", "no engine answers; clusters run as local processes", "start Docker")
    try:
        engine = f"engine {client.version()['Version']}"
        tags = [tag for image in client.images.list(IMAGE) for tag in image.tags]
    except DockerException as error:
        return Finding("Docker (optional)", "optional", f"the engine does not answer as it should: {error}", "restart Docker")
    finally:
        client.close()
    from kafkalab.distribution import KAFKA_VERSION

    image = f"{IMAGE}:{KAFKA_VERSION}"
    if image in tags:
        return Finding("Docker (optional)", "ok", f"{engine}, image {image}")
    return Finding("Docker (optional)", "optional", f"{engine}, without the image {image}", f"docker pull {image}")


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    packages,
    java,
    memory,
    cache_disk,
    runs_disk,
    progress,
    *(functools.partial(machine, subject) for subject in CONDITIONS),
    own_files,
    ports,
    kafka_jars,
    spark_connector,
    class_data_archives,
    tools,
    commands,
    docker_engine,
)


def find_all() -> Iterator[Finding]:
    """Run all checks, one after the other. A check that fails itself is a finding, too."""
    for check in CHECKS:
        try:
            yield check()
        except (OSError, RuntimeError, KafkaLabError) as error:  # no home folder, no /proc, a disk that can't be read
            summary, *_ = (getattr(check, "func", check).__doc__ or "").splitlines()  # not what a partial is
            yield Finding("This could not be checked", "missing", f"{summary} {error}", "fix the other lines first")
