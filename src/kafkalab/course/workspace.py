"""The learner's own folder: copies of chapters and labs, kept up to date. An update never overwrites the learner's changes."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from pathlib import Path

from kafkalab.course import manifest
from kafkalab.course.content import SOLUTIONS, Content
from kafkalab.course.installed import find_course
from kafkalab.course.manifest import GONE, Entry
from kafkalab.course.names import find_notebook, labs_of
from kafkalab.course.versions import Version
from kafkalab.course.walk import files_below
from kafkalab.errors import KafkaLabError
from kafkalab.files import write_atomically

__all__ = ["Update", "Workspace", "open_workspace", "reset", "solution", "workspace_dir", "written_in"]

HIDDEN = ".kafkalab"
"""A workspace's hidden folder: records of what was copied, and which tabs JupyterLab had open."""

RELEASED = f"{HIDDEN}/released"
"""The part of it with solutions that a teacher has released. They stay out of sight until the learner asks for one."""

# The first line of a module that a learner writes in a lab.
WRITTEN_IN = re.compile(rb"# Written in the lab (\w+)")


@dataclass
class Update:
    """The changes of an update: names of files, as the course calls them.

    Attributes
    ----------
    created
        Whether this made a new workspace.
    added, updated, removed
        Files that are new in the course, changed in it, or no longer part of it.
    kept
        Notebooks that were run, but not edited, before the update → the file that keeps that run.
    left
        Files that changed in the course, but were left alone → why.
    """

    created: bool = False
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: dict[str, Path] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


class Workspace:
    """The learner's own folder.

    It has the course's layout (``notebooks``, ``labs``), so links between notebooks, labs and pictures work in it.
    Notebooks come without outputs, and solutions only on request. A file counts as changed if somebody edited it.
    Running a notebook only rewrites its outputs and metadata, so that doesn't count.

    Parameters
    ----------
    folder
        The folder. It may not exist yet.
    content
        The course to copy.
    """

    def __init__(self, folder: Path, content: Content) -> None:
        self.folder = folder
        self._content = content

    def update(self) -> Update:
        """Copy new files, update untouched ones, and leave alone what the learner changed or deleted.

        Two processes may update at the same time: one waits for the other.

        Raises
        ------
        KafkaLabError
            If the folder can't be written or is part of the course itself. Nothing of the learner's is lost, and the
            next call continues.
        """
        changes = Update()
        with self._changing() as entries:
            if not any((self.folder / name).exists() for name in entries):
                entries.clear()  # everything was deleted, so create a new workspace
            solutions = self._solutions()
            course_files = self._content.files() | {name: path for name, path in solutions.items() if name in entries}
            for name, path in course_files.items():
                entries[name] = self._update_file(name, Version.for_learners(path), entries.get(name), changes)
            # A course may have the solutions of some chapters only. Those of others stay if the learner has them.
            solved = {Path(name).parent for name in solutions}
            for name in sorted(entries.keys() - course_files.keys()):
                if Path(name).parent in solved or not name.startswith(f"{SOLUTIONS}/"):
                    entry = self._remove_file(name, entries.pop(name), changes)
                    entries |= {name: entry} if entry else {}
            changes.created = len(changes.added) == len(course_files)
        return changes

    def open(self, name: str) -> Path:
        """Return the file of a chapter or lab. Copy it if it's missing.

        Raises
        ------
        KafkaLabError
            If `find_notebook` finds no notebook of that name, or the folder can't be written.
        """
        notebook = find_notebook(name, self._content)
        path = self.folder / notebook
        if not path.exists():
            with self._changing() as entries:
                self._refresh(notebook, self._content.files()[notebook], entries)
        return path

    def reset(self, name: str) -> tuple[Path, Path | None]:
        """Make a fresh copy of a chapter or lab. Raises like `open`.

        Returns
        -------
        tuple of Path and (Path or None)
            The fresh notebook, and the file beside it that keeps the old version, if that had changed.
        """
        notebook = find_notebook(name, self._content)
        with self._changing() as entries:
            kept = self._refresh(notebook, self._content.files()[notebook], entries)
        return self.folder / notebook, kept

    def find_solution(self, name: str) -> str:
        """Return the name of a lab's solution in the course (``solutions/…/….ipynb``).

        Raises
        ------
        KafkaLabError
            If `find_notebook` finds no lab of that name, or the course has no solution for it.
        """
        notebook = find_notebook(name, self._content)
        stem = Path(notebook).stem
        if notebook.startswith("notebooks/"):
            labs = ", ".join(Path(path).stem for path in labs_of(notebook, self._content)) or "none"
            raise KafkaLabError(f"{stem} is a chapter, and only labs have solutions; its labs: {labs}")
        solution = notebook.replace("labs/", f"{SOLUTIONS}/", 1)
        if solution not in self._solutions():
            raise KafkaLabError(
                f"there is no solution of {stem} yet: this course came without it, and your teacher releases solutions chapter "
                "by chapter. When you have the file, call `kafkalab release FILE`"
            )
        return solution

    def solution(self, name: str) -> tuple[Path, list[Path]]:
        """Copy a lab's solution into ``solutions``, with the modules it needs. Raises like `find_solution` and `open`.

        Returns
        -------
        tuple of Path and list of Path
            The solution's notebook, and the files beside it that keep the learner's changes to an earlier copy.
        """
        notebook = self.find_solution(name)
        lab = Path(notebook).stem
        files = self._solutions()
        # Don't copy a module that the learner writes in another lab: it would give that away.
        beside = [path for path in files if Path(path).parent == Path(notebook).parent and not path.endswith(".ipynb")]
        modules = [path for path in beside if written_in(files[path]) in (None, lab)]
        with self._changing() as entries:
            kept = [self._refresh(name, files[name], entries) for name in (notebook, *modules)]
        return self.folder / notebook, [path for path in kept if path]

    def release(self, solutions: Mapping[str, bytes]) -> None:
        """Take up solutions that the course came without: `solution` finds them from now on. Raises like `update`.

        Nothing else in the workspace changes. A solution that was released before is replaced.

        Parameters
        ----------
        solutions
            Files by their names in the course: ``solutions/NN_chapter/NN_lab.ipynb``.
        """
        with self._changing():
            for name, data in solutions.items():
                _write(self.folder / RELEASED / name, data)

    def _solutions(self) -> dict[str, Path]:
        """Return the solutions that there are, by name. The course's own count for more than released ones."""
        released = self.folder / RELEASED
        found = {path.relative_to(released).as_posix(): path for path in files_below(released)}
        return found | self._content.solutions()

    def left_alone(self) -> dict[str, str]:
        """Return what updates have left alone until now: names of files → why. What the learner deleted isn't among it."""
        left = {}
        for name, entry in manifest.load(self.folder / HIDDEN / "manifest.json").items():
            if entry.seen != entry.copied and (self.folder / name).exists():
                left[name] = "it is no longer part of the course" if entry.seen == GONE else "the course has a newer one"
        return left

    def work(self) -> dict[str, Path]:
        """Return what the learner made, edited or ran: names within the workspace → files, in order."""
        entries = manifest.load(self.folder / HIDDEN / "manifest.json")
        files = {}
        for path in files_below(self.folder):
            name = path.relative_to(self.folder).as_posix()
            entry = entries.get(name)
            if entry is None or entry.copied is None or Version.of(path.read_bytes(), name).digest != entry.copied:
                files[name] = path
        return files

    def take_up(self, name: str, data: bytes) -> Path | None:
        """Put the learner's work from elsewhere in place. Raises like `update`.

        Returns
        -------
        Path or None
            The file beside it that keeps what was here, if that was the learner's work, too, and other than this.
        """
        path = self.folder / name
        kept = None
        with self._changing() as entries:
            if path.exists():
                digest = Version.of(path.read_bytes(), name).digest
                entry = entries.get(name)
                if digest != Version.of(data, name).digest and not (entry and digest == entry.copied):
                    kept = _keep(path)
            _write(path, data)
        return kept

    def _update_file(self, name: str, fresh: Version, entry: Entry | None, changes: Update) -> Entry:
        path = self.folder / name
        try:
            mine = Version.of(path.read_bytes(), name)
        except FileNotFoundError:
            if entry is None and not path.is_symlink():
                _write(path, fresh.data)
                changes.added.append(name)
                return Entry.of(fresh)
            return self._leave(name, fresh, entry, "you deleted it", changes)
        except OSError as error:  # a folder, or an unreadable file
            return self._leave(name, fresh, entry, f"it can't be read: {error.strerror}", changes)

        untouched = entry is not None and mine.digest == entry.copied
        if mine.sources == fresh.sources:
            if untouched and mine.digest != fresh.digest:
                _write(path, fresh.data)  # only metadata differ
            return Entry.of(fresh)
        if not untouched:
            if entry is None:
                return self._leave(name, fresh, entry, "it was there already", changes)
            if mine.sources != entry.sources:
                return self._leave(name, fresh, entry, "you changed it", changes)
            changes.kept[name] = _keep(path)
        _write(path, fresh.data)
        changes.updated.append(name)
        return Entry.of(fresh)

    @staticmethod
    def _leave(name: str, fresh: Version, entry: Entry | None, why: str, changes: Update) -> Entry:
        if entry is None or entry.seen != fresh.digest:  # once for each version
            changes.left[name] = why
        return replace(entry, seen=fresh.digest) if entry else Entry(None, None, fresh.digest)

    def _remove_file(self, name: str, entry: Entry, changes: Update) -> Entry | None:
        """Remove a file that the course no longer has. Return its entry if it's left alone."""
        path = self.folder / name
        try:
            untouched = Version.of(path.read_bytes(), name).digest == entry.copied
        except OSError:
            return None
        if not untouched:
            if entry.seen != GONE:
                changes.left[name] = "it is no longer part of the course"
            return replace(entry, seen=GONE)
        path.unlink()
        changes.removed.append(name)
        for folder in path.relative_to(self.folder).parents[:-1]:
            if any((self.folder / folder).iterdir()):
                break
            (self.folder / folder).rmdir()
        return None

    def _refresh(self, name: str, source: Path, entries: dict[str, Entry]) -> Path | None:
        """Put a fresh copy in place, and return the file that keeps the old one if that had changed."""
        path = self.folder / name
        fresh = Version.for_learners(source)
        kept = None
        if os.path.lexists(path):
            entry = entries.get(name)
            digest = Version.of(path.read_bytes(), name).digest
            if digest != fresh.digest and not (entry and digest == entry.copied):
                kept = _keep(path)
        _write(path, fresh.data)
        entries[name] = Entry.of(fresh)
        return kept

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Entry]]:
        """Yield the entries for changes, and store them afterwards. Other processes wait."""
        root = self._content.root.resolve()
        folder = self.folder.resolve()
        if folder == root or any(folder.is_relative_to(root / name) for name in ("notebooks", "labs", SOLUTIONS)):
            raise KafkaLabError(f"{self.folder} holds the course itself; name another folder for your workspace")
        hidden = self.folder / HIDDEN
        try:
            hidden.mkdir(parents=True, exist_ok=True)
            with open(hidden / "lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                entries = manifest.load(hidden / "manifest.json")
                before = dict(entries)
                try:
                    yield entries
                finally:
                    if entries != before:
                        manifest.save(hidden / "manifest.json", entries)
        except OSError as error:
            raise KafkaLabError(_sentence(self.folder, error)) from error


def _sentence(folder: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"there is no space left for the workspace {folder}; free some, then call it again to go on"
    reason = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return f"the workspace {folder} can't be written ({reason}); name another folder: kafkalab lab --workspace DIR"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


def _keep(path: Path) -> Path:
    """Copy a file to an unused name beside it, with today's date."""
    for number in count(1):
        mark = f"{date.today()}" if number == 1 else f"{date.today()}.{number}"
        kept = path.with_name(f"{path.stem}.{mark}{path.suffix}")
        try:
            file = kept.open("xb")
        except FileExistsError:
            continue
        try:
            with file:
                file.write(path.read_bytes())
        except OSError:
            kept.unlink()
            raise
        return kept
    raise AssertionError  # count() does not end


def written_in(path: Path) -> str | None:
    """Return the lab in which a learner writes this module, or None for any other file."""
    if path.suffix != ".py":
        return None
    with path.open("rb") as file:
        match = WRITTEN_IN.match(file.readline())
    return match[1].decode() if match else None


def workspace_dir(requested: Path | None = None) -> Path:
    """Return the folder of the learner's workspace.

    That is the requested folder, else the one that ``KAFKALAB_WORKSPACE`` names, else the workspace that contains the
    current folder, else ``workspace`` in the clone, or ``~/kafkalab`` for an installed package.
    """
    if requested is None and (named := os.environ.get("KAFKALAB_WORKSPACE")):
        requested = Path(named)
    if requested is not None:
        return requested.expanduser().absolute()
    working_folder = Path.cwd()
    for folder in (working_folder, *working_folder.parents):
        if (folder / HIDDEN / "manifest.json").exists():
            return folder
    clone = find_course().clone
    return clone / "workspace" if clone else Path.home() / "kafkalab"


def open_workspace(folder: Path | None = None) -> Workspace:
    """Return the learner's workspace (see `workspace_dir`), unchanged. `Workspace.update` brings it up to date.

    Raises
    ------
    KafkaLabError
        If the course's notebooks are missing.
    """
    return Workspace(workspace_dir(folder), find_course().content)


def reset(name: str) -> Path:
    """Call `Workspace.reset` for the learner's workspace, and return the fresh notebook."""
    return open_workspace().reset(name)[0]


def solution(name: str) -> Path:
    """Call `Workspace.solution` for the learner's workspace, and return the solution's notebook."""
    return open_workspace().solution(name)[0]
