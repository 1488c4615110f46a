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
    """Compile one public class, the provider of a service, into a jar named after the class.

    Parameters
    ----------
    source
        Its source code, in Java 17.
    service
        The service that it implements.
    folder
        The folder for the jar.
    classes, report
        As for `compile_jar`.

    Raises
    ------
    JavaError
        Also if the source has no public class.
    """
    public_class = _CLASS.search(source)
    if public_class is None:
        raise JavaError("the source has no `public class`, which the jar would be named after")
    package = _PACKAGE.search(source)
    name = f"{package[1]}.{public_class[1]}" if package else public_class[1]
    return compile_jar({public_class[1]: source}, {name: service}, classes, folder / f"{public_class[1]}.jar", report)


def compile_jar(
    sources: Mapping[str, str], services: Mapping[str, str], classes: str, jar: Path, report: Report | None = None
) -> Path:
    """Compile classes into a jar, and register some of them as providers of services, for Java's `ServiceLoader`.

    Parameters
    ----------
    sources
        Source code by the class's simple name, in Java 17.
    services
        The service that a class implements, by the class's full name.
    classes
        Class path for the compiler.
    jar
        The jar to write, in one step. It replaces an earlier one.
    report
        Called with the progress if the compiler is downloaded.

    Raises
    ------
    JavaError
        If the sources don't compile. The message holds the compiler's output.
    DownloadError, HashMismatch
        If the compiler isn't in the cache and can't be downloaded, or doesn't match the lock.
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
    """Return a jar from the cache, compiled by `compile_jar` on first use. Other sources or class paths give another jar.

    Parameters
    ----------
    name
        The jar's name.
    groups
        Groups of locked jars that `classes` consists of.

    Raises
    ------
    KafkaLabError
        As `compile_jar`, or if the cache can't be written.
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
