"""Compile Java without a JDK: Eclipse's compiler is an ordinary jar, and runs on the course's Java."""

from __future__ import annotations

import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

from kafkalab.distribution.jars import ensure_jars
from kafkalab.distribution.java import java_command
from kafkalab.distribution.shared import Report
from kafkalab.distribution.tools import JVM_OPTIONS
from kafkalab.errors import JavaError

__all__ = ["compile_service"]

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
    [compiler] = ensure_jars("ecj", report)
    with tempfile.TemporaryDirectory() as scratch:
        file, compiled = Path(scratch, f"{named[1]}.java"), Path(scratch, "classes")
        file.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [str(java_command()), *JVM_OPTIONS, "-cp", str(compiler), _MAIN,
             "-17", "-encoding", "UTF-8", "-nowarn", "-proc:none", "-cp", classes, "-d", str(compiled), str(file)],
            check=False, capture_output=True, text=True, errors="replace",
        )  # fmt: skip
        if done.returncode != 0:
            raise JavaError(f"{named[1]} doesn't compile:\n{done.stderr.replace(f'{scratch}/', '').strip()}")
        draft, jar = folder / f".{named[1]}.draft", folder / f"{named[1]}.jar"
        with zipfile.ZipFile(draft, "w") as archive:
            for path in sorted(compiled.rglob("*.class")):
                archive.write(path, path.relative_to(compiled))
            archive.writestr(f"META-INF/services/{service}", f"{name}\n")
    draft.replace(jar)
    return jar
