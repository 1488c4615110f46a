"""What all clones of the course on a machine share in the cache: made once, kept while in use, then removed.

An *entry* is a folder in the cache, named after the content it was made from. Two files in ``locks`` belong to it. The
process that makes the entry locks the first. Each process that uses the entry locks the second, and that file's time
shows when the entry was last used.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from kafkalab import underway
from kafkalab.conditions import home, require
from kafkalab.errors import KafkaLabError
from kafkalab.files import write_atomically
from kafkalab.paths import cache_dir

__all__ = [
    "PREPARING_VARIABLE",
    "UNUSED_DAYS",
    "Report",
    "announce",
    "cache_folder",
    "environment_dir",
    "made_by_one",
    "mark_used",
    "sweep",
    "warn",
]

Report = Callable[[str, int, int], object]
"""Called with the progress: what is being done, how many units are done, how many there are in total."""

PREPARING_VARIABLE = "KAFKALAB_PREPARING"
"""Names a folder. While a process downloads or prepares something, it keeps a file there that says what."""

UNUSED_DAYS = 30
"""Days without use after which `sweep` removes an entry."""

_ENTRIES = ("archives", "jars", "plugins", "registries")
# Of earlier versions of the course, which had them elsewhere, and of processes that were killed.
_LEFT_BEHIND = ("archives/*.jsa", "bin", "bootstrap-*.checkpoint", "registry-*", "*-jars-*", "download-*", "unpack-*")


def announce(what: str, done: int, total: int) -> None:
    """Show progress, as a `Report`: in the panel beside the notebook, or else as a line on standard error."""
    if not underway.now.report(what, done, total):
        warn(str(underway.Task(what, done, total)))


def warn(what: str) -> None:
    """Write a line that should stay to standard error."""
    print(what, file=sys.stderr, flush=True)


def cache_folder(*parts: str) -> Path:
    """Return a folder in the cache, and create it if it's missing.

    Raises
    ------
    KafkaLabError
        If it can't be created. The message names the folder and says what to do.
    """
    if "KAFKALAB_CACHE" not in os.environ:
        require(home)  # or the folder would be called ~, wherever this process is
    folder = cache_dir().joinpath(*parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(error) from error
    return folder


def _unusable(error: OSError) -> KafkaLabError:
    return KafkaLabError(
        f"the cache folder {cache_dir()} can't be written ({error.strerror}). "
        "Free it, or name another one: export KAFKALAB_CACHE=/another/folder"
    )


def _lock_file(entry: Path, purpose: str) -> Path:
    return cache_folder("locks") / f"{entry.parent.name}-{entry.name}.{purpose}"


@contextlib.contextmanager
def made_by_one(entry: Path, what: str, report: Report | None = None) -> Iterator[None]:
    """Let one process at a time make an entry. The others wait, say what for, and find it made.

    This time doesn't count towards a cell's time limit in `kafkalab run`.

    Parameters
    ----------
    entry
        Its folder.
    what
        What is made, for messages: ``the schema registry``.
    report
        Called while waiting. Without it, `announce` says so.

    Raises
    ------
    KafkaLabError
        If the cache can't be written.
    """
    path = _lock_file(entry, "making")
    with underway.task(f"Preparing {what}"), _told_of_preparing(what), _opened(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (report or announce)(f"waiting for process {lock.read().strip() or '?'}, which prepares {what}", 0, 1)
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _opened(path: Path) -> IO[str]:
    try:
        return open(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+")
    except OSError as error:
        raise _unusable(error) from error


@contextlib.contextmanager
def _told_of_preparing(what: str) -> Iterator[None]:
    folder = os.environ.get(PREPARING_VARIABLE)
    if not folder or not os.path.isdir(folder):
        yield
        return
    with tempfile.NamedTemporaryFile("w", dir=folder) as note:
        note.write(what)
        note.flush()
        yield


@functools.cache
def _kept_open(path: Path, process: int) -> IO[str] | None:
    try:
        lock = _opened(path)
    except KafkaLabError:  # a read-only cache, which no process sweeps
        return None
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def mark_used(entry: Path) -> None:
    """Note that this process uses an entry until it ends, so that the entry isn't removed meanwhile."""
    with contextlib.suppress(KafkaLabError):
        lock = _kept_open(_lock_file(entry, "used"), os.getpid())
        if lock is not None:
            os.utime(lock.fileno())


def sweep(unused_days: float = UNUSED_DAYS) -> int:
    """Remove what was unused for this many days, and the commands of environments whose Java or course is gone.

    Returns
    -------
    int
        The number of bytes freed.
    """
    freed = 0
    for entry in (path for kind in _ENTRIES for path in cache_dir().glob(f"{kind}/*/")):
        freed += _sweep_entry(entry, unused_days)
    for environment in cache_dir().glob("environments/*/"):
        if _is_orphaned(environment):
            freed += _removed(environment)
    for left in (path for pattern in _LEFT_BEHIND for path in cache_dir().glob(pattern)):
        if _days_since(left) > unused_days:
            freed += _removed(left)
    return freed


def _is_orphaned(environment: Path) -> bool:
    try:
        owners = (environment / "owners").read_text().splitlines()
    except FileNotFoundError:
        return _days_since(environment) > 1  # a process may still be making it
    return not all(map(os.path.exists, owners))


def _sweep_entry(entry: Path, unused_days: float) -> int:
    path = _lock_file(entry, "used")
    if _days_since(path if path.exists() else entry) <= unused_days:
        return 0
    with _opened(path) as used, _opened(_lock_file(entry, "making")) as making:
        try:
            for lock in (making, used):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        return _removed(entry)


def _days_since(path: Path) -> float:
    try:
        return (time.time() - path.stat().st_mtime) / 86_400
    except FileNotFoundError:  # another process sweeps, too
        return 0


def _removed(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    # Removing a file that has a second name elsewhere frees nothing.
    freed = sum(status.st_size for status in (file.stat() for file in files) if status.st_nlink == 1)
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return freed


def environment_dir(java: Path) -> Path:
    """Return the folder of files specific to this clone: its Java, its packages. It's removed after one of them is gone.

    Parameters
    ----------
    java
        The ``java`` command.
    """
    owners = f"{java}\n{Path(__file__).parent}\n"
    folder = cache_folder("environments", hashlib.sha256(owners.encode()).hexdigest()[:12])
    note = folder / "owners"
    if not note.exists():
        write_atomically(note, owners)
    return folder
