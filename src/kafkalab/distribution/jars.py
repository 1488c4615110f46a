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

from kafkalab.errors import DownloadError, HashMismatch
from kafkalab.paths import cache_dir

__all__ = ["KAFKA_VERSION", "Jar", "Report", "ensure_jars", "faulty_jars", "jars_dir", "locked_jars", "lock_digest"]

Report = Callable[[str, int, int], None]
"""Told of progress: what is being done, how many units are done, how many there are in all."""

# Any fixed time will do: the class-data archive remembers the jars' times and must stay valid when one is fetched again.
_FIXED_TIME = 1_700_000_000

# Of a file larger than this, parts of this size are reported, too.
_LARGE = 8 << 20


@dataclass(frozen=True)
class Jar:
    """One locked jar: Maven coordinate ``group:artifact:version``, size in bytes, SHA-256 in hex.

    Another kind of file than a jar has the coordinate ``group:artifact:version:classifier:type``.
    """

    coordinate: str
    bytes: int
    sha256: str

    @property
    def file_name(self) -> str:
        """``artifact-version.jar``, or ``artifact-version-classifier.type``"""
        _, artifact, version, *other = self.coordinate.split(":")
        return f"{artifact}-{version}-{other[0]}.{other[1]}" if other else f"{artifact}-{version}.jar"

    def is_intact(self, folder: Path) -> bool:
        """Whether the folder holds this jar, with the locked content."""
        path = folder / self.file_name
        try:
            if path.stat().st_size != self.bytes:
                return False
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


@functools.cache
def _lock() -> dict:
    return json.loads(resources.files(__package__).joinpath("jars.json").read_text())


KAFKA_VERSION: str = _lock()["kafka_version"]
"""Version of Apache Kafka that the course runs."""


def lock_digest() -> str:
    """A short name of the lock's content, for what is built from the jars."""
    return hashlib.sha256(json.dumps(_lock()["groups"]["kafka"]).encode()).hexdigest()[:12]


def locked_jars(group: str) -> list[Jar]:
    """The jars of a group, as ``jars.json`` names them: ``kafka`` (brokers and tools), ``spark`` (Spark's connectors) …"""
    return [Jar(**entry) for entry in _lock()["groups"][group]]


def jars_dir(group: str) -> Path:
    """The folder that holds a group's jars, and nothing else."""
    return cache_dir() / f"{group}-jars-{KAFKA_VERSION}"


def faulty_jars(group: str) -> list[Jar]:
    """Jars of a group that are missing from the cache or are not what was locked."""
    return [jar for jar in locked_jars(group) if not jar.is_intact(jars_dir(group))]


def ensure_jars(group: str, report: Report | None = None) -> list[Path]:
    """Make sure that every jar of a group is in the cache, whole and unaltered.

    A jar that is missing, truncated or altered is downloaded (again). Interrupted at any moment, the cache holds
    only whole jars, and the next call goes on from there.

    Parameters
    ----------
    group
        As for `locked_jars`.
    report
        Told of progress in bytes.

    Returns
    -------
    list of Path
        The jars, sorted by name.

    Raises
    ------
    DownloadError
        When a jar cannot be downloaded; the message names all that are missing.
    HashMismatch
        When what was downloaded is not what was locked.
    """
    folder = jars_dir(group)
    wanted = locked_jars(group)
    missing = [jar for jar in wanted if not jar.is_intact(folder)]
    if missing:
        _download(missing, folder, report)
    return sorted(folder / jar.file_name for jar in wanted)


def _download(missing: list[Jar], folder: Path, report: Report | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    total, done = sum(jar.bytes for jar in missing), 0
    failures: dict[str, Exception] = {}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="download-") as scratch:
        with ThreadPoolExecutor(8) as pool:
            tasks = {pool.submit(_fetch, jar, Path(scratch), folder, report): jar for jar in missing}
            try:
                for task in as_completed(tasks):
                    jar = tasks[task]
                    if error := task.exception():
                        failures[jar.file_name] = error  # type: ignore[assignment]
                        continue
                    done += jar.bytes
                    if report:
                        report(f"downloading {jar.file_name}", done, total)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    for error in failures.values():
        if isinstance(error, HashMismatch):
            raise error
    if failures:
        name, error = next(iter(failures.items()))
        raise DownloadError(
            f"{len(failures)} of the jars that Kafka needs are not in the cache and could not be downloaded "
            f"({', '.join(sorted(failures)[:3])}{', …' if len(failures) > 3 else ''}). Is there a network? "
            f"Once they are here, everything works offline; `kafkalab fetch` tries again. Reason: {type(error).__name__}"
        ) from error


def _fetch(jar: Jar, scratch: Path, folder: Path, report: Report | None) -> None:
    from jgo.maven import MavenContext, PythonResolver  # only when something is missing: it loads an HTTP client

    group, artifact, version, *other = jar.coordinate.split(":")
    # A repository of its own per jar, so that nothing found elsewhere on this machine is taken for a download.
    resolver = PythonResolver(progress_callback=_in_steps(report) if report and jar.bytes > _LARGE else None)
    context = MavenContext(resolver=resolver, repo_cache=scratch / jar.sha256, timeout=30)
    path = context.project(group, artifact).at_version(version).artifact(*other).resolve()
    if not jar.is_intact(path.parent):
        raise HashMismatch(
            f"what was downloaded as {jar.file_name} is not the locked file (its SHA-256 differs); it was not used. "
            "A proxy or captive portal may have answered in the repository's place."
        )
    os.utime(path, (_FIXED_TIME, _FIXED_TIME))
    target = folder / jar.file_name
    if target.is_dir():
        shutil.rmtree(target)
    os.replace(path, target)


def _in_steps(report: Report) -> Callable[[str, int], AbstractContextManager[Callable[[int], None]]]:
    """The progress of one large download, as jgo tells it, for a report."""

    @contextmanager
    def progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
        done = told = 0

        def add(count: int) -> None:
            nonlocal done, told
            done += count
            if done - told >= _LARGE and done < total:
                told = done
                report(f"downloading {name}", done, total)

        yield add

    return progress
