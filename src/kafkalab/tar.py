"""Unpacking tar archives."""

from __future__ import annotations

import tarfile
from pathlib import Path

__all__ = ["unpack"]


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack all of an archive into a folder.

    Where Python can (from 3.11.4 on), names that lead out of the folder are refused with `tarfile.FilterError`. Python 3.11.2,
    Debian 12's, has no such filters yet; the attribute is the form that is right for both, as
    https://docs.python.org/3/library/tarfile.html#supporting-older-python-versions says.
    """
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)
