"""``python -m kafkalab.grading.enclosure SPECIFICATION``: close this process off, then become the worker. Linux only.

`kafkalab.grading.isolation` starts it by ``unshare``, with namespaces of its own for the network, mounts and processes. Here
it brings loopback up, makes the machine's files read-only, hides some, puts an empty folder of limited size on ``/tmp``, sets
limits, and gives up every privilege. What it starts can undo none of that.

Sources: mount_namespaces(7), mount_setattr(2), user_namespaces(7), getrlimit(2).
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import sys
from dataclasses import asdict, dataclass

__all__ = ["ROOM", "Specification", "main"]

ROOM = "/tmp/grading"
"""The worker's folder, in the folder of limited size."""

_MS_NOSUID, _MS_NODEV = 2, 4
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SYS_MOUNT_SETATTR = 442  # on every architecture
_MOUNT_ATTR_RDONLY = 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Specification:
    """What the process may see and use.

    Attributes
    ----------
    hidden
        Folders that appear empty.
    kept
        Files and folders that stay visible, even if they are in a hidden one.
    disk_bytes
        Size of ``/tmp`` and ``/dev/shm``, which alone can be written.
    file_bytes, tasks
        Largest file, and how many processes and threads there may be.
    user
        The user and group to become; None to stay the same.
    command
        What to run in the end.
    """

    hidden: list[str]
    kept: list[str]
    disk_bytes: int
    file_bytes: int
    tasks: int
    user: int | None
    command: list[str]

    def as_text(self) -> str:
        """Return it as an argument for the command line."""
        return json.dumps(asdict(self))


def main(specification: Specification) -> None:
    """Close this process off, and run the command in its place.

    Raises
    ------
    OSError
        If the system doesn't allow it. The command isn't run then.
    """
    _loopback_up()
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV)
    kept = {path: os.open(path, os.O_PATH) for path in specification.kept}
    writable = ["/tmp", "/dev/shm"]
    for folder in (*writable, *sorted(specification.hidden)):
        if os.path.isdir(folder):
            size, mode = (specification.disk_bytes, "1777") if folder in writable else (1 << 20, "755")
            _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},mode={mode}")
    for path, descriptor in kept.items():
        if not os.path.exists(path):
            _bind(descriptor, path)
        os.close(descriptor)
    _set_read_only("/", True, recursive=True)
    for folder in filter(os.path.isdir, writable):
        _set_read_only(folder, False)
    os.mkdir(ROOM)
    if specification.user is not None:
        os.chown(ROOM, specification.user, specification.user)
    os.chdir(ROOM)
    resource.setrlimit(resource.RLIMIT_FSIZE, (specification.file_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (specification.tasks,) * 2)
    os.execvp("setpriv", ["setpriv", *_without_privileges(specification.user), "--", *specification.command])


def _without_privileges(user: int | None) -> list[str]:
    become = [] if user is None else [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [*become, "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs"]


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if text is None else text.encode() for text in (source, target, kind, data)]
    if _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def _bind(descriptor: int, path: str) -> None:
    """Let what a descriptor stands for appear at a path again."""
    if os.path.isdir(f"/proc/self/fd/{descriptor}"):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "x").close()
    _mount(f"/proc/self/fd/{descriptor}", path, None, _MS_BIND | _MS_REC)


def _set_read_only(path: str, read_only: bool, *, recursive: bool = False) -> None:
    attributes = struct.pack("QQQQ", *((_MOUNT_ATTR_RDONLY, 0) if read_only else (0, _MOUNT_ATTR_RDONLY)), 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    if _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, ctypes.c_size_t(len(attributes))):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


if __name__ == "__main__":
    main(Specification(**json.loads(sys.argv[1])))
