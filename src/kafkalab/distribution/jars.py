"""The locked jars: downloaded once, verified by SHA-256 before every use."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from kafkalab import underway
from kafkalab.distribution.shared import Report, cache_folder, made_by_one, mark_used
from kafkalab.errors import DownloadError, HashMismatch
from kafkalab.paths import cache_dir

__all__ = [
    "FIXED_TIME",
    "KAFKA_VERSION",
    "KAFKA_VERSIONS",
    "Jar",
    "ensure_jars",
    "faulty_jars",
    "file_digest",
    "jars_dir",
    "lock_digest",
    "locked_jars",
]

FIXED_TIME = 1_700_000_000
"""The timestamp that every jar gets. Class-data archives store it, and must stay valid if a jar is downloaded again."""

# For a larger file than this, parts of this size are reported, too.
_LARGE = 8 << 20

# Where another version of the course, or another group, may have the same jar.
_SAME_JARS = ("jars/*", "*-jars-*")


@dataclass(frozen=True)
class Jar:
    """One locked jar: Maven coordinate ``group:artifact:version``, size in bytes, SHA-256 in hex.

    A file of another kind has the coordinate ``group:artifact:version:classifier:type``.
    """

    coordinate: str
    bytes: int
    sha256: str

    @property
    def file_name(self) -> str:
        """``artifact-version.jar``, or ``artifact-version-classifier.type``."""
        _, artifact, version, *kind = self.coordinate.split(":")
        return f"{artifact}-{version}-{kind[0]}.{kind[1]}" if kind else f"{artifact}-{version}.jar"

    def is_intact(self, folder: Path) -> bool:
        """Return whether the folder holds this jar with the locked content."""
        path = folder / self.file_name
        try:
            return path.stat().st_size == self.bytes and file_digest(path) == self.sha256
        except OSError:
            return False


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hex. It's computed again only if the file was touched since the last call."""
    status = path.stat()
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@functools.lru_cache(maxsize=1024)
def _digest(path: Path, *touched: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def _lock() -> dict[str, Any]:
    return json.loads(resources.files(__package__).joinpath("jars.json").read_text())  # type: ignore[no-any-return]


KAFKA_VERSION: str = _lock()["kafka_version"]
"""Version of Apache Kafka that the course runs."""

KAFKA_VERSIONS: tuple[str, ...] = (KAFKA_VERSION, *_lock()["other_versions"])
"""Versions whose brokers and tools you can run. The course's own comes first."""


def _entries(group: str, version: str | None) -> list[dict[str, Any]]:
    if version in (None, KAFKA_VERSION):
        groups = _lock()["groups"]
    elif version in KAFKA_VERSIONS:
        groups = _lock()["other_versions"][version]
    else:
        raise ValueError(f"there is no Kafka {version!r} here; there are {', '.join(KAFKA_VERSIONS)}")
    return groups[group]  # type: ignore[no-any-return]


def lock_digest(group: str = "kafka", version: str | None = None) -> str:
    """Return a short hash of a group's lock, which names what is built from its jars."""
    return hashlib.sha256(json.dumps(_entries(group, version)).encode()).hexdigest()[:12]


def locked_jars(group: str, version: str | None = None) -> list[Jar]:
    """Return the jars of a group of ``jars.json``: ``kafka`` for brokers and tools, ``spark`` for Spark's connectors, etc.

    Kafka versions other than the course's own only have the group ``kafka``.

    Raises
    ------
    ValueError
        If that version isn't locked. The message lists the locked ones.
    """
    return [Jar(**entry) for entry in _entries(group, version)]


def jars_dir(group: str, version: str | None = None) -> Path:
    """Return the folder that holds only a group's jars. Its name contains the lock's hash, so each lock has its own folder."""
    label = f"{group}-{version or KAFKA_VERSION}" if group == "kafka" else group
    return cache_dir() / "jars" / f"{label}-{lock_digest(group, version)}"


def faulty_jars(group: str, version: str | None = None) -> list[Jar]:
    """Return the jars of a group that are missing from the cache or don't match the lock."""
    folder = jars_dir(group, version)
    return [jar for jar in locked_jars(group, version) if not jar.is_intact(folder)]


def ensure_jars(group: str, report: Report | None = None, version: str | None = None) -> list[Path]:
    """Make sure that every jar of a group is in the cache, complete and unaltered.

    A jar that is missing, truncated or altered is downloaded, unless another group in the cache has it. Even after an
    interrupt, the cache holds only complete jars, and the next call continues from there. If several processes call
    this at the same time, one downloads and the others wait.

    Returns
    -------
    list of Path
        The jars, sorted by name.

    Raises
    ------
    DownloadError
        If a jar can't be downloaded. The message names all missing ones.
    HashMismatch
        If a download doesn't match the lock.
    KafkaLabError
        If the cache can't be written.
    """
    folder = jars_dir(group, version)
    mark_used(folder)
    if faulty_jars(group, version):
        with made_by_one(folder, f"the jars of {group}", report):
            cache_folder("jars", folder.name)
            missing = [jar for jar in faulty_jars(group, version) if not _link_from_cache(jar, folder)]
            if missing:
                _download(missing, folder, report or underway.now.report)
    return sorted(folder / jar.file_name for jar in locked_jars(group, version))


def _link_from_cache(jar: Jar, folder: Path) -> bool:
    for copy in (path for pattern in _SAME_JARS for path in cache_dir().glob(f"{pattern}/{jar.file_name}")):
        if copy.parent != folder and jar.is_intact(copy.parent):
            _put(copy, folder / jar.file_name, os.link)
            return True
    return False


def _put(source: Path, target: Path, how: Callable[[Path, Path], object]) -> None:
    """Put a jar in place under its name in one step, and replace whatever was there."""
    draft = target.with_name(f".{target.name}")
    draft.unlink(missing_ok=True)
    try:
        how(source, draft)
    except OSError:
        shutil.copyfile(source, draft)
    os.utime(draft, (FIXED_TIME, FIXED_TIME))
    if target.is_dir():
        shutil.rmtree(target)
    draft.replace(target)


def _download(missing: list[Jar], folder: Path, report: Report) -> None:
    total, done = sum(jar.bytes for jar in missing), 0
    failures: dict[str, BaseException] = {}
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="download-") as scratch, ThreadPoolExecutor(8) as pool:
        tasks = {pool.submit(_fetch, jar, Path(scratch), folder, report): jar for jar in missing}
        try:
            for task in as_completed(tasks):
                jar = tasks[task]
                if error := task.exception():
                    failures[jar.file_name] = error
                    continue
                done += jar.bytes
                report(f"downloading {jar.file_name}", done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for error in failures.values():
        if isinstance(error, HashMismatch):
            raise error
    if failures:
        error = next(iter(failures.values()))
        raise DownloadError(
            f"{len(failures)} of the jars that are needed are not in the cache and could not be downloaded "
            f"({', '.join(sorted(failures)[:3])}{', …' if len(failures) > 3 else ''}). Is there a network? "
            f"`kafkalab fetch --all` gets what every chapter needs; after that, the course works offline. "
            f"Reason: {type(error).__name__}: {error}"
        ) from error


def _fetch(jar: Jar, scratch: Path, folder: Path, report: Report) -> None:
    from jgo.maven import MavenContext, PythonResolver  # imported only if something is missing, because it loads an HTTP client

    group, artifact, version, *kind = jar.coordinate.split(":")
    # Each jar gets its own repository, so that a file found elsewhere on this machine doesn't count as a download.
    resolver = PythonResolver(progress_callback=_in_steps(report) if jar.bytes > _LARGE else None)
    context = MavenContext(resolver=resolver, repo_cache=scratch / jar.sha256, timeout=30)
    path = context.project(group, artifact).at_version(version).artifact(*kind).resolve()
    if not jar.is_intact(path.parent):
        raise HashMismatch(
            f"what was downloaded as {jar.file_name} is not the locked file (its SHA-256 differs); it was not used. "
            "A proxy or captive portal may have answered in the repository's place."
        )
    _put(path, folder / jar.file_name, os.replace)


def _in_steps(report: Report) -> Callable[[str, int], AbstractContextManager[Callable[[int], None]]]:
    """Convert jgo's progress of one large download for a report."""

    @contextmanager
    def progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
        done = reported = 0

        def add(count: int) -> None:
            nonlocal done, reported
            done += count
            if done - reported >= _LARGE and done < total:
                reported = done
                report(f"downloading {name}", done, total)

        yield add

    return progress
