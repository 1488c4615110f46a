"""Compile Java without a JDK: Eclipse's compiler is an ordinary jar, and runs on the course's Java."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkalab.distribution.jars import ensure_jars, lock_digest
from kafkalab.distribution.java import java_command
from kafkalab.distribution.shared import Report, cache_folder, made_by_one, mark_used
from kafkalab.distribution.tools import JVM_OPTIONS
from kafkalab.environment import inherited
from kafkalab.errors import JavaError
from kafkalab.exits import exit_status, signal_of
from kafkalab.paths import cache_dir

__all__ = ["compile_jar", "compile_service", "jar_in_cache"]

_MAIN = "org.eclipse.jdt.internal.compiler.batch.Main"
_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_CLASS = re.compile(r"^\s*public\s+(?:final\s+)?class\s+(\w+)", re.MULTILINE)


def compile_service(source: str, service: str, classes: str, folder: Path, report: Report | None = None) -> Path:
    """Compile a public class into a jar that registers it as a provider of a service.

    Parameters
    ----------
    source
        Source code of the class, in Java 17.
    service
        The service that it implements. Java's `ServiceLoader` finds the class under that name.
    classes
        Class path for the compiler.
    folder
        Where to write the jar, in one step, named after the class. It replaces a jar of that name.
    report
        Called with the progress when the compiler is downloaded.

    Returns
    -------
    Path
        The jar.

    Raises
    ------
    JavaError
        If the source has no public class, or doesn't compile. The message holds the compiler's output.
    DownloadError, HashMismatch
        If the compiler isn't in the cache and can't be downloaded, or doesn't match the lock.
    """
    named = _CLASS.search(source)
    if named is None:
        raise JavaError("the source has no `public class`, which the jar would be named after")
    package = _PACKAGE.search(source)
    name = f"{package[1]}.{named[1]}" if package else named[1]
    return compile_jar({named[1]: source}, {name: service}, classes, folder / f"{named[1]}.jar", report)


def compile_jar(
    sources: Mapping[str, str], services: Mapping[str, str], classes: str, jar: Path, report: Report | None = None
) -> Path:
    """Compile classes into a jar that registers some of them as providers of services.

    Parameters
    ----------
    sources
        Of each class, in Java 17, by its simple name.
    services
        What a class implements, by the class's full name: Java's `ServiceLoader` finds it under that.
    classes
        Class path for the compiler.
    jar
        Appears in one step.
    report
        Told of progress when the compiler is downloaded.

    Returns
    -------
    Path
        The jar.

    Raises
    ------
    JavaError
        When they don't compile; with what the compiler says.
    DownloadError, HashMismatch
        When the compiler isn't in the cache and cannot be downloaded, or is not what was locked.
    """
    [compiler] = ensure_jars("ecj", report)
    with tempfile.TemporaryDirectory() as scratch:
        compiled = Path(scratch, "classes")
        files = [Path(scratch, f"{name}.java") for name in sources]
        for file, source in zip(files, sources.values(), strict=True):
            file.write_text(source, encoding="utf-8")
        result = subprocess.run(
            [str(java_command()), *JVM_OPTIONS, "-cp", str(compiler), _MAIN,
             "-17", "-encoding", "UTF-8", "-nowarn", "-proc:none", "-cp", classes, "-d", str(compiled), *map(str, files)],
            check=False, capture_output=True, text=True, env=inherited(), errors="replace",
        )  # fmt: skip
        if signal_of(result.returncode):
            raise JavaError(f"the compiler of {', '.join(sources)} was {exit_status(result.returncode)}")
        if result.returncode != 0:
            raise JavaError(f"{', '.join(sources)} doesn't compile:\n{result.stderr.replace(f'{scratch}/', '').strip()}")
        draft = jar.with_name(f".{jar.stem}.draft")
        with zipfile.ZipFile(draft, "w") as archive:
            for path in sorted(compiled.rglob("*.class")):
                archive.write(path, path.relative_to(compiled))
            for service in sorted(set(services.values())):
                providers = [provider for provider, provided in services.items() if provided == service]
                archive.writestr(f"META-INF/services/{service}", "".join(f"{provider}\n" for provider in providers))
    return draft.replace(jar)


def jar_in_cache(
    name: str,
    sources: Mapping[str, str],
    services: Mapping[str, str],
    classes: str,
    groups: Sequence[str],
    report: Report | None = None,
) -> Path:
    """Return the jar of classes of this package, compiled once for these sources and jars, and then in the cache.

    Parameters
    ----------
    name
        Of the jar.
    sources, services, classes, report
        As `compile_jar` takes them.
    groups
        Groups of locked jars that `classes` consists of.

    Raises
    ------
    JavaError, DownloadError, HashMismatch
        As `compile_jar` raises them.
    KafkaLabError
        If the cache can't be written.
    """
    made_from = [*sources.items(), *map(lock_digest, (*groups, "ecj"))]
    entry = cache_dir() / "plugins" / f"{name}-{hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]}"
    jar = entry / f"{name}.jar"
    mark_used(entry)
    if not jar.exists():
        with made_by_one(entry, f"the plug-in {name}", report):
            if not jar.exists():
                cache_folder("plugins", entry.name)
                compile_jar(sources, services, classes, jar, report)
    return jar
