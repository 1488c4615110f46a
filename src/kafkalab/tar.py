"""Unpack tar archives, once or repeatedly."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath

from kafkalab.files import write_atomically

__all__ = ["mirror", "unpack"]


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack a whole archive into a folder.

    From Python 3.11.4 on, names that lead out of the folder raise `tarfile.FilterError`. Python 3.11.2, which Debian 12
    has, lacks such filters. Setting the attribute works with both, see
    https://docs.python.org/3/library/tarfile.html#supporting-older-python-versions.
    """
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)


def mirror(archive: tarfile.TarFile, folder: Path) -> None:
    """Make a folder's files match those of an archive of files and folders.

    Leave unchanged files alone, append to files that grew, and replace all others. Remove what the archive's folders no
    longer have.

    Raises
    ------
    tarfile.ReadError
        If the archive is cut off. The files before that point are mirrored, and nothing is removed.
    """
    files: set[PurePosixPath] = set()
    folders: set[PurePosixPath] = set()
    for member in archive:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not path.name:
            continue
        if member.isdir():
            folders.add(path)
            (folder / path).mkdir(parents=True, exist_ok=True)
        elif member.isfile():
            content = archive.extractfile(member)
            assert content is not None  # because it is a file
            files.add(path)
            _write(folder / path, content.read())
    for parent in folders | {path.parent for path in files if path.parent.name}:
        for existing in (folder / parent).iterdir():
            if (path := parent / existing.name) in folders:
                continue
            if existing.is_dir():
                shutil.rmtree(existing)
            elif path not in files:
                existing.unlink()


def _write(path: Path, content: bytes) -> None:
    before = path.read_bytes() if path.exists() else None
    if before == content:
        return
    if before and content.startswith(before):
        with open(path, "ab") as file:
            file.write(content[len(before) :])
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
