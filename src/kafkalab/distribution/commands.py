"""Show all that ``!command`` in a cell prints, to its last line."""

from __future__ import annotations

import sys

__all__ = ["keep_all_output"]


def keep_all_output() -> None:
    """Make sure that ``!command`` in a cell loses no output. Outside IPython this does nothing.

    Works around a defect of pexpect 4.9.0, with which IPython runs commands. ``spawn.read_nonblocking`` waits for output until
    its timeout (IPython: 50 ms), then calls ``isalive()``. If the process writes and ends between the two, it raises EOF
    ("Very slow platform") and drops what was written. So this reads once more after EOF.
    """
    if "IPython" not in sys.modules:
        return
    import pexpect

    read = pexpect.spawn.read_nonblocking
    if read.__module__ == __name__:
        return

    def read_to_the_end(self: object, size: int = 1, timeout: float | None = -1) -> object:
        try:
            return read(self, size, timeout)
        except pexpect.EOF:
            return read(self, size, timeout)  # raises it again if nothing is left

    pexpect.spawn.read_nonblocking = read_to_the_end
