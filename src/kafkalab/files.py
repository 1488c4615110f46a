"""Write a file so that its readers never see half of it."""

from __future__ import annotations

import uuid
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: Path, content: bytes | str, mode: int = 0o666) -> Path:
    """Write a file in one step, and return it. Readers get the complete old or new file, and a failure leaves the old one.

    Parameters
    ----------
    path
        The file. Its folder exists.
    content
        Its new content. Text is written in UTF-8.
    mode
        Its permissions, less those that the umask takes away.

    Raises
    ------
    OSError
        If the folder can't be written, or the disk is full.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        draft.touch(mode, exist_ok=False)
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        return draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
