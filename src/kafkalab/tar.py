"""Unpacking tar archives, at once or again and again."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path, PurePosixPath

__all__ = ["mirror", "unpack"]


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack all of an archive into a folder.

    Where Python can (from 3.11.4 on), names that lead out of the folder are refused with `tarfile.FilterError`. Python 3.11.2,
    Debian 12's, has no such filters yet; the attribute is the form that is right for both, as
    https://docs.python.org/3/library/tarfile.html#supporting-older-python-versions says.
    """
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)


def mirror(archive: tarfile.TarFile, folder: Path) -> None:
    """Make a folder's files like those of an archive of files and flat folders.

    A file that did not change is left alone, one that grew is appended to, any other is replaced by a new one. Files of the
    archive's folders that it no longer has are removed.

    Raises
    ------
    tarfile.ReadError
        When the archive breaks off; the files before are mirrored, and nothing is removed.
    """
    names: set[str] = set()
    for member in archive:
        path = PurePosixPath(member.name)
        if not member.isfile() or path.is_absolute() or ".." in path.parts:
            continue
        content = archive.extractfile(member)
        assert content is not None  # it is a file
        names.add(str(path))
        _write(folder / path, content.read())
    for parent in {PurePosixPath(name).parent for name in names}:
        for there in (folder / parent).iterdir() if parent.name else ():
            if str(parent / there.name) not in names:
                there.unlink()


def _write(path: Path, content: bytes) -> None:
    before = path.read_bytes() if path.exists() else None
    if before == content:
        return
    if before and content.startswith(before):
        with open(path, "ab") as file:
            file.write(content[len(before) :])
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(content)
    os.replace(draft, path)
