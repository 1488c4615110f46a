"""Class-data archives: classes parsed and laid out once, so that each JVM starts in a fraction of the time.

See the java command's documentation, "Class Data Sharing" (``-XX:SharedClassListFile``, ``-Xshare:dump``,
``-XX:SharedArchiveFile``). The archives are static, because the course's Java comes without the base archive that
dynamic ones need.

Java compares sizes and times of the jars, but not their folders. So one archive serves every clone of the course whose
jars have the same content, and every copy of the same Java.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkalab.distribution.jars import KAFKA_VERSION, ensure_jars, file_digest, lock_digest
from kafkalab.distribution.java import java_command, java_identity
from kafkalab.distribution.shared import Report, announce, cache_folder, made_by_one, mark_used, warn
from kafkalab.environment import inherited
from kafkalab.errors import JavaError, KafkaLabError
from kafkalab.exits import CRASHES, exit_status, signal_of
from kafkalab.files import write_atomically
from kafkalab.paths import cache_dir

__all__ = [
    "ClassDataArchive",
    "archive_options",
    "archive_path",
    "classpath",
    "kafka_archive",
]


_SIGN_OF_LIFE = 10.0  # seconds between two lines about a long preparation


@dataclass(frozen=True)
class ClassDataArchive:
    """One archive in the cache, with its checksum.

    Attributes
    ----------
    name
        The name of the program whose classes it holds.
    content
        Everything it depends on besides the Java and the list of classes. With another content, it's another archive.
    recorded
        The list of its classes, ``recorded/<this>.txt.gz`` beside this module; ``tools/class_lists.py`` records it.
    with_lambdas
        Whether the list was recorded with exactly this program. Its mapping from lambdas to classes is only valid
        there: Java crashes over a lambda that another version doesn't have.
    """

    name: str
    content: str
    recorded: str
    with_lambdas: bool = True

    @property
    def folder(self) -> Path:
        """Its folder in the cache."""
        key = f"{self.content}{java_identity(java_command())}{self.with_lambdas}".encode() + self._list.read_bytes()
        return cache_dir() / "archives" / f"{self.name}-{hashlib.sha256(key).hexdigest()[:12]}"

    @property
    def path(self) -> Path:
        """The file that Java reads."""
        return self.folder / "classes.jsa"

    @property
    def _list(self) -> Path:
        return Path(__file__).with_name("recorded") / f"{self.recorded}.txt.gz"

    @property
    def _checksum(self) -> Path:
        return self.folder / "checksum.json"

    def exists(self) -> bool:
        """Return whether it was made. It may have been damaged since."""
        return self.path.exists()

    def is_whole(self, *, thoroughly: bool = False) -> bool:
        """Return whether it's there and unchanged.

        Parameters
        ----------
        thoroughly
            Compute its SHA-256 again, even if the file wasn't touched since the last time.
        """
        try:
            record = json.loads(self._checksum.read_text())
            status = self.path.stat()
            touched = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
            if record["touched"] == touched and not thoroughly:
                return True
            if record["archive"] != file_digest(self.path):
                return False
        except (OSError, ValueError, KeyError):
            return False
        if record["touched"] != touched:
            with contextlib.suppress(OSError):  # the cache may be read-only
                self._note({**record, "touched": touched})
        return True

    def options(self, classes: str) -> list[str]:
        """Return the JVM options that use it. If it wasn't made yet, there are none: JVMs work, but start slower.

        `classes` is the class path it was made with. If it's damaged, which would crash the JVM, it's made again first.
        """
        mark_used(self.folder)
        if not self.exists():
            return []
        if not self.is_whole():
            warn(f"the class-data archive of {self.name} is damaged; making it anew")
            try:
                self.make(classes, announce)
            except KafkaLabError as error:
                warn(f"JVMs start slowly without it: {error}")
                return []
        # Stay silent about an archive that doesn't fit: the JVM then works without it.
        return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]

    def make(self, classes: str, report: Report | None = None) -> None:
        """Make the archive unless it's intact (checked thoroughly).

        If another process is making it, wait for that process. When this returns, the archive is in place.

        Raises
        ------
        JavaError
            If Java can't write it. The message holds Java's reason.
        """
        with made_by_one(self.folder, f"the class-data archive of {self.name}", report):
            if self.is_whole(thoroughly=True):
                return
            if report:
                report(
                    f"preparing {self.name} for quick starts: Java lays out its classes, once. It takes a minute or two.", 0, 1
                )
            self.path.unlink(missing_ok=True)  # no archive is better than a damaged one
            lines = gzip.decompress(self._list.read_bytes()).decode().splitlines()
            without_lambdas = [line for line in lines if not line.startswith("@")]
            if not self.with_lambdas:
                self._write(classes, without_lambdas, report)
            else:
                try:
                    self._write(classes, lines, report)
                except _Refused:  # another Java than the one that recorded them
                    self._write(classes, without_lambdas, report)
            if report:
                report(f"{self.name} is prepared", 1, 1)

    def _write(self, classes: str, lines: list[str], report: Report | None) -> None:
        cache_folder("archives", self.folder.name)
        mark_used(self.folder)
        draft, names, crash = (self.folder / f"draft-{os.getpid()}.{kind}" for kind in ("jsa", "txt", "crash"))
        names.write_text("\n".join(lines) + "\n")
        try:
            status, output = _run(
                [str(java_command()), "-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={draft}",
                 f"-XX:ErrorFile={crash}", "-Xlog:disable", "-Xlog:all=error:stderr", "-cp", classes],
                lambda seconds: report(f"still preparing {self.name}: {seconds:.0f} s so far", 0, 1) if report else None,
            )  # fmt: skip
            if status != 0 or not draft.exists():
                reason = "; ".join(filter(None, (exit_status(status), output[-500:])))
                signal_number = signal_of(status)
                kind = JavaError if signal_number and signal_number.name not in CRASHES else _Refused
                raise kind(f"the class-data archive of {self.name} could not be written: {reason}")
            # First write the record of its hash: after a crash in between, the archive is made again.
            self._note({"archive": file_digest(draft), "touched": []})
            draft.replace(self.path)
        finally:
            for file in (draft, names, crash):
                file.unlink(missing_ok=True)

    def _note(self, record: dict[str, object]) -> None:
        write_atomically(self._checksum, json.dumps(record))


class _Refused(JavaError):
    """Java can't use the list of classes: it ended with an error, or crashed. Nobody killed it."""


def _run(command: list[str], still_running: Callable[[float], object]) -> tuple[int, str]:
    """Run a command, and return its exit status and what it wrote. Now and again, call a function with the seconds so far."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=inherited()) as process:
        try:
            while True:
                try:
                    output, errors = process.communicate(timeout=_SIGN_OF_LIFE)
                    return process.returncode, errors or output
                except subprocess.TimeoutExpired:
                    still_running(time.monotonic() - began)
        except BaseException:
            process.kill()
            raise


def classpath(version: str | None = None) -> str:
    """Return the class path of brokers and tools of a Kafka version, by default of the course's own."""
    return os.pathsep.join(str(path) for path in ensure_jars("kafka", version=version))


def kafka_archive(version: str | None = None) -> ClassDataArchive:
    """Return the archive of brokers and tools of a Kafka version, by default of the course's own."""
    version = version or KAFKA_VERSION
    return ClassDataArchive(f"kafka-{version}", lock_digest("kafka", version), "kafka", with_lambdas=version == KAFKA_VERSION)


def archive_path(version: str | None = None) -> Path:
    """Return where the archive for this Java and these jars is, or would be."""
    return kafka_archive(version).path


def archive_options(version: str | None = None) -> list[str]:
    """Return `ClassDataArchive.options` for a Kafka version. For another than the course's, it's made on first use."""
    archive = kafka_archive(version)
    if not archive.with_lambdas and not archive.exists():
        announce(f"preparing {archive.name} for quick starts", 0, 1)
        try:
            archive.make(classpath(version))
        except JavaError as error:
            warn(f"{archive.name} will start slowly: {error}")
    return archive.options(classpath(version))
