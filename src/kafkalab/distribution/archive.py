"""The class-data archive: Kafka's classes, parsed and laid out once, so that each JVM starts in a fraction of the time.

See the java command's documentation, "Class Data Sharing" (``-XX:SharedClassListFile``, ``-Xshare:dump``,
``-XX:SharedArchiveFile``). The archive is a static one, since the course's Java comes without a base archive on
which a dynamic one could stand.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from kafkalab.distribution.jars import ensure_jars, lock_digest
from kafkalab.distribution.java import java_command
from kafkalab.errors import JavaError
from kafkalab.paths import cache_dir

__all__ = [
    "archive_options",
    "archive_path",
    "build_archive",
    "classpath",
    "options_for",
    "record_classes_option",
    "write_archive",
]


def classpath() -> str:
    """The class path of brokers and tools; the archive is only valid for this very one."""
    return os.pathsep.join(str(path) for path in ensure_jars("kafka"))


def archive_path() -> Path:
    """Where the archive for this Java and these jars is, or would be."""
    java = java_command()
    release = (java.parent.parent / "release").read_bytes() if (java.parent.parent / "release").exists() else b""
    key = hashlib.sha256(f"{java}{lock_digest()}{cache_dir()}".encode() + release).hexdigest()[:12]
    return cache_dir() / "archives" / f"kafka-{key}.jsa"


def archive_options() -> list[str]:
    """JVM options that use the archive; none if it was not built (yet): everything works, but starts slower."""
    return options_for(archive_path())


def options_for(path: Path) -> list[str]:
    """JVM options that use the archive in a file; none if it is not there."""
    # Silent about an archive that does not fit: the JVM then goes on without it.
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"] if path.exists() else []


def record_classes_option(path: Path) -> str:
    """JVM option that writes the names of all loaded classes to a file when the JVM ends."""
    return f"-XX:DumpLoadedClassList={path}"


def build_archive(class_lists: Iterable[Path]) -> Path:
    """Build the archive from the classes that trial runs recorded.

    On return the archive is in place, whole; an older one for the same Java and jars is replaced.

    Raises
    ------
    JavaError
        When Java cannot write it; the message holds its reason.
    """
    return write_archive(archive_path(), classpath(), class_lists)


def write_archive(target: Path, classes: str, class_lists: Iterable[Path]) -> Path:
    """The same for any class path, into any file.

    Raises
    ------
    JavaError
        When Java cannot write it; the message holds its reason.
    """
    lines = dict.fromkeys(line for path in class_lists for line in _portable_lines(path.read_text()))
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}")
    names = draft.with_suffix(".classes")
    names.write_text("\n".join(lines) + "\n")
    try:
        done = subprocess.run(
            [java_command(), "-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={draft}",
             "-Xlog:disable", "-Xlog:all=error:stderr", "-cp", classes],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0 or not draft.exists():
            raise JavaError(f"the class-data archive could not be written: {done.stderr[-500:] or done.stdout[-500:]}")
        draft.replace(target)
    finally:
        names.unlink(missing_ok=True)
        draft.unlink(missing_ok=True)
    return target


def _portable_lines(class_list: str) -> Iterable[str]:
    # Class ids count per JVM, so lists of several JVMs can only be merged without them; classes of other loaders, which
    # only ids can name, are left out.
    for line in class_list.splitlines():
        if " source: " not in line:
            yield re.sub(r" id: \d+$", "", line)
