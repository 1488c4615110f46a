"""Class-data archives: classes parsed and laid out once, so that each JVM starts in a fraction of the time.

See the java command's documentation, "Class Data Sharing" (``-XX:SharedClassListFile``, ``-Xshare:dump``,
``-XX:SharedArchiveFile``). The archives are static ones, since the course's Java comes without a base archive on
which dynamic ones could stand.

Java compares sizes and times of the jars, not the folders that they are in. So one archive serves every clone of the course
whose jars have the same content, and every copy of the same Java.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kafkalab.distribution.jars import KAFKA_VERSION, ensure_jars, file_digest, lock_digest
from kafkalab.distribution.java import java_command, java_identity
from kafkalab.distribution.shared import announce, cache_folder, made_by_one, mark_used
from kafkalab.errors import JavaError
from kafkalab.paths import cache_dir

__all__ = [
    "ClassDataArchive",
    "archive_options",
    "archive_path",
    "build_archive",
    "classpath",
    "kafka_archive",
    "record_classes_option",
]


@dataclass(frozen=True)
class ClassDataArchive:
    """One archive in the cache, with its checksum and with the list of classes that it was made from.

    Attributes
    ----------
    name
        What its classes are from.
    content
        All that it depends on beside the Java: another content, another archive.
    """

    name: str
    content: str

    @property
    def folder(self) -> Path:
        """Its place in the cache."""
        key = hashlib.sha256(f"{self.content}{java_identity(java_command())}".encode()).hexdigest()[:12]
        return cache_dir() / "archives" / f"{self.name}-{key}"

    @property
    def path(self) -> Path:
        """The file that Java reads."""
        return self.folder / "classes.jsa"

    @property
    def class_list(self) -> Path:
        """Names of the classes in it."""
        return self.folder / "classes.txt"

    @property
    def _checksums(self) -> Path:
        return self.folder / "checksums.json"

    def exists(self) -> bool:
        """Whether it was made; perhaps it was damaged since."""
        return self.path.exists()

    def is_whole(self, *, thoroughly: bool = False) -> bool:
        """Whether it is there, and as it was made.

        Parameters
        ----------
        thoroughly
            Compute its SHA-256 again, even if nobody touched the file since that was last done.
        """
        try:
            record = json.loads(self._checksums.read_text())
            status = self.path.stat()
            touched = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
            if record["touched"] == touched and not thoroughly:
                return True
            if record["archive"] != file_digest(self.path):
                return False
        except (OSError, ValueError, KeyError):
            return False
        if record["touched"] != touched:
            with contextlib.suppress(OSError):  # a cache that can only be read
                self._note({**record, "touched": touched})
        return True

    def options(self, classes: str) -> list[str]:
        """JVM options that use it; none if it wasn't made (yet): everything works, but starts slower.

        A damaged one, which would crash the JVM, is made anew first.

        Parameters
        ----------
        classes
            The class path that it was made with.
        """
        mark_used(self.folder)
        if self.exists() and not self.is_whole():
            with made_by_one(self.folder, f"the class-data archive of {self.name}"):
                if not self.is_whole():
                    self._repair(classes)
        if not self.exists():
            return []
        # Silent about an archive that does not fit: the JVM then goes on without it.
        return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]

    def _repair(self, classes: str) -> None:
        announce(f"the class-data archive of {self.name} is damaged; making it anew", 0, 1)
        try:
            lines = self.class_list.read_text()
            intact = json.loads(self._checksums.read_text())["classes"] == hashlib.sha256(lines.encode()).hexdigest()
        except (OSError, ValueError, KeyError):
            intact = False
        if intact:
            self.write(classes, [self.class_list])
        else:
            self.path.unlink()
            announce("it can't be made from here, and JVMs start slowly without it; `kafkalab fetch` makes it", 1, 1)

    def write(self, classes: str, class_lists: Iterable[Path]) -> Path:
        """Write it, from the classes that trial runs recorded. On return it is in place, whole; an older one is replaced.

        Call it within `made_by_one`.

        Parameters
        ----------
        classes
            A class path.
        class_lists
            Files that `record_classes_option` had JVMs write.

        Raises
        ------
        JavaError
            When Java cannot write it; the message holds its reason.
        """
        lines = dict.fromkeys(line for path in class_lists for line in _portable_lines(path.read_text()))
        text = "\n".join(lines) + "\n"
        cache_folder("archives", self.folder.name)
        mark_used(self.folder)
        draft, names, crash = (self.folder / f"draft-{os.getpid()}.{kind}" for kind in ("jsa", "txt", "crash"))
        names.write_text(text)
        try:
            done = subprocess.run(
                [java_command(), "-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={draft}",
                 f"-XX:ErrorFile={crash}", "-Xlog:disable", "-Xlog:all=error:stderr", "-cp", classes],
                check=False, capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode != 0 or not draft.exists():
                reason = done.stderr[-500:] or done.stdout[-500:]
                raise JavaError(f"the class-data archive of {self.name} could not be written: {reason}")
            # First what tells whether it is whole: a crash in between leaves an archive that is made anew.
            self._note({"archive": file_digest(draft), "classes": hashlib.sha256(text.encode()).hexdigest(), "touched": []})
            names.replace(self.class_list)
            draft.replace(self.path)
        finally:
            for file in (draft, names, crash):
                file.unlink(missing_ok=True)
        return self.path

    def _note(self, record: dict[str, object]) -> None:
        draft = self._checksums.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(record))
        draft.replace(self._checksums)


def _portable_lines(class_list: str) -> Iterable[str]:
    # Class ids count per JVM, so lists of several JVMs can only be merged without them; classes of other loaders, which
    # only ids can name, are left out.
    for line in class_list.splitlines():
        if " source: " not in line:
            yield re.sub(r" id: \d+$", "", line)


def record_classes_option(path: Path) -> str:
    """JVM option that writes the names of all loaded classes to a file when the JVM ends."""
    return f"-XX:DumpLoadedClassList={path}"


def classpath(version: str | None = None) -> str:
    """The class path of brokers and tools of a version; without one, of the course's own."""
    return os.pathsep.join(str(path) for path in ensure_jars("kafka", version=version))


def kafka_archive(version: str | None = None) -> ClassDataArchive:
    """The archive of brokers and tools of a version; without one, of the course's own."""
    return ClassDataArchive(f"kafka-{version or KAFKA_VERSION}", lock_digest("kafka", version))


def archive_path(version: str | None = None) -> Path:
    """Where the archive for this Java and these jars is, or would be."""
    return kafka_archive(version).path


def archive_options(version: str | None = None) -> list[str]:
    """JVM options that use the archive; none if it was not built (yet): everything works, but starts slower.

    Of another version than the course's own it is built on first use, from the classes that the own one has: most are the same.
    """
    archive = kafka_archive(version)
    if version not in (None, KAFKA_VERSION) and not archive.exists():
        _derive(archive, classpath(version))
    return archive.options(classpath(version))


def _derive(archive: ClassDataArchive, classes: str) -> None:
    own = kafka_archive()
    if not own.is_whole():
        return
    with made_by_one(archive.folder, f"the class-data archive of {archive.name}"):
        if not archive.exists():
            announce(f"preparing {archive.name} for quick starts", 0, 1)
            # Which lambda became which class is the own version's: Java crashes over one that the other doesn't have.
            lines = (line for line in own.class_list.read_text().splitlines() if not line.startswith("@"))
            names = cache_folder("archives", archive.folder.name) / "from-the-own-version.txt"
            names.write_text("\n".join(lines))
            try:
                archive.write(classes, [names])
            except JavaError as error:
                announce(f"{archive.name} will start slowly: {error}", 0, 1)
            finally:
                names.unlink()


def build_archive(class_lists: Iterable[Path]) -> Path:
    """Build the archive of the course's own version from the classes that trial runs recorded.

    On return the archive is in place, whole; an older one for the same Java and jars is replaced.

    Raises
    ------
    JavaError
        When Java cannot write it; the message holds its reason.
    """
    return kafka_archive().write(classpath(), class_lists)
