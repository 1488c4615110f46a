"""Key tables: files with the keys of Kerberos principals."""

from __future__ import annotations

import struct
from pathlib import Path

from kafkalab.security.files import write_private

__all__ = ["split_keytab"]

_VERSION = b"\x05\x02"


def split_keytab(table: Path, folder: Path) -> dict[str, Path]:
    """Give each principal of a key table a table of its own.

    Parameters
    ----------
    table
        A key table of version 2 of the format, as all of today's tools write it.
    folder
        Where the new ones go; only their owner can read them.

    Returns
    -------
    dict
        The new table by principal, without its realm: ``alice``, ``kafka/localhost``.

    Raises
    ------
    ValueError
        When it is no such table.
    """
    content = table.read_bytes()
    if content[:2] != _VERSION:
        raise ValueError(f"{table} is no key table of version 2")
    entries: dict[str, bytes] = {}
    position = 2
    while position < len(content):
        (size,) = struct.unpack_from(">i", content, position)
        end = position + 4 + abs(size)
        if size > 0:  # a negative one is a hole, left by an entry that was removed
            name = _principal(content, position + 4)
            entries[name] = entries.get(name, b"") + content[position:end]
        position = end
    return {name: write_private(folder / f"{name.replace('/', '_')}.keytab", _VERSION + kept) for name, kept in entries.items()}


def _principal(content: bytes, position: int) -> str:
    (count,) = struct.unpack_from(">h", content, position)
    position += 2
    texts = []
    for _ in range(count + 1):  # the realm comes first
        (length,) = struct.unpack_from(">h", content, position)
        texts.append(content[position + 2 : position + 2 + length].decode())
        position += 2 + length
    return "/".join(texts[1:])
