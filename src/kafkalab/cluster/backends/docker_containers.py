"""What the back end does with single containers: freeze and remove them, and copy files to and from them."""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docker.errors import APIError, NotFound
from docker.models.containers import Container

from kafkalab.tar import mirror
from kafkalab.waiting import wait_until

__all__ = ["freeze", "in_parallel", "mirror_path", "packed", "put_files", "remove", "unless_gone"]

_FREEZE_SECONDS = 10


def in_parallel(tasks: Iterable[Callable[[], None]]) -> None:
    """Run tasks in parallel. When this returns, also after an interrupt, none of them is running."""
    tasks = list(tasks)
    with ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()


def remove(container: Container) -> None:
    """Remove a container and its volumes, also if another process is already removing it."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        pass
    except APIError as error:
        if error.status_code != 409:  # its removal is already in progress
            raise


def freeze(container: Container, name: str) -> None:
    """Pause a container. Leave one alone that has ended or is already paused.

    With version 1 of control groups, runc tries only for a few milliseconds and then lets all threads continue. A
    thread that waits for the disk can't be frozen before that is done.
    """
    refusal = ""

    def frozen() -> bool:
        nonlocal refusal
        try:
            unless_gone(container.pause)
        except APIError as error:
            refusal = str(error.explanation)
            if "unable to freeze" not in refusal:
                raise
            return False
        return True

    wait_until(frozen, _FREEZE_SECONDS, f"{name} to freeze", last_seen=lambda: refusal)


def unless_gone(act: Callable[[], None]) -> None:
    """Act on a container. It's no error if the container has ended meanwhile or is already in the wanted state."""
    try:
        act()
    except APIError as error:
        harmless = ("is not running", "is not paused", "already paused")
        if error.status_code != 409 and not any(words in str(error.explanation) for words in harmless):
            raise


@contextlib.contextmanager
def packed(container: Container, path: str) -> Iterator[tarfile.TarFile]:
    """Open the archive that the engine makes of a path in a container."""
    chunks, _ = container.get_archive(path)
    with tempfile.TemporaryFile() as spool:
        for chunk in chunks:
            spool.write(chunk)
        spool.seek(0)
        with tarfile.open(fileobj=spool) as archive:
            yield archive


def mirror_path(container: Container, path: str, folder: Path) -> None:
    """Make a folder on this machine hold what is at a path in a container; nothing, if there is nothing."""
    try:
        # What stands before the place where an archive breaks off is correct.
        with contextlib.suppress(tarfile.ReadError), packed(container, path) as archive:
            mirror(archive, folder)
    except NotFound:
        outdated = folder / Path(path).name
        if outdated.is_dir():
            shutil.rmtree(outdated)
        else:
            outdated.unlink(missing_ok=True)


def put_files(container: Container, files: Mapping[str, bytes], folders: Collection[str], owner: int) -> None:
    """Put files into a container, with the folders that it lacks. Only the owner, a user's id, can read the files."""

    def entry(path: str, mode: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
        made = tarfile.TarInfo(path.lstrip("/"))
        made.mode, made.type = mode, kind
        made.mtime = int(time.time())  # a broker recognizes a new key store by its time
        made.uid = made.gid = owner
        return made

    existing = {"/", *folders}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, content in files.items():
            for parent in map(str, reversed(Path(path).parents)):
                if parent not in existing:
                    existing.add(parent)
                    tar.addfile(entry(parent, 0o755, tarfile.DIRTYPE))
            file = entry(path, 0o600)
            file.size = len(content)
            tar.addfile(file, io.BytesIO(content))
    container.put_archive("/", archive.getvalue())
