"""A class-data archive for Spark, so that a session and its first query start sooner.

With it, a session and a first query over a topic take two thirds of the processor time. The archive takes 190 MB of
disk. Without it, everything works.

Each clone has PySpark's jars in its own environment, and one archive serves all clones. Java uses an archive only if the jars
on the class path have the names, sizes and times that they had when the archive was made. So all jars get the same time, and
the class path names links in the archive's own folder. If it named one clone's jars, the archive would end with that clone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from importlib import metadata
from pathlib import Path

import pyspark

from kafkalab.distribution import ClassDataArchive, spark_jars
from kafkalab.distribution.jars import FIXED_TIME
from kafkalab.distribution.shared import cache_folder

__all__ = ["archive_options", "classpath", "spark_archive"]

_LINKS = "jars"  # a folder in the archive's; Java rejects an archive whose class path had another name


def classpath() -> str:
    """Return the class path of Spark and its Kafka connector: links to the jars, in a fixed order.

    The links point to the jars of the clone that came first. If those are gone, they point to this clone's, which are the same.
    """
    folder = cache_folder("archives", spark_archive().folder.name, _LINKS)
    links = [(folder / jar.name, jar) for jar in _jars()]
    for link, jar in links:
        if not _same(link, jar):
            draft = folder / f".{jar.name}.{os.getpid()}"
            draft.symlink_to(jar)
            draft.replace(link)
    return os.pathsep.join(str(link) for link, _ in links)


def spark_archive() -> ClassDataArchive:
    """Return the archive for this Java and these jars."""
    jars = "".join(f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}\n" for jar in _jars())
    record = metadata.distribution("pyspark").read_text("RECORD") or ""  # each file's SHA-256, as pip installed it
    content = "\n".join(sorted(line for line in record.splitlines() if line.startswith("pyspark/jars/")))
    return ClassDataArchive("spark", hashlib.sha256(f"{_LINKS}\n{jars}{content}".encode()).hexdigest(), "spark")


def archive_options() -> list[str]:
    """Return the JVM options that use the archive. Empty if it wasn't built."""
    return spark_archive().options(classpath())


def _same(link: Path, jar: Path) -> bool:
    try:
        target, original = link.stat(), jar.stat()
    except OSError:  # gone, or in somebody else's home
        return False
    return (target.st_size, target.st_mtime_ns) == (original.st_size, original.st_mtime_ns)


def _jars() -> list[Path]:
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    for jar in jars:
        if jar.stat().st_mtime != FIXED_TIME:
            with contextlib.suppress(OSError):  # somebody else's: then the archive is for this environment alone
                os.utime(jar, (FIXED_TIME, FIXED_TIME))
    return [*jars, *spark_jars()]
