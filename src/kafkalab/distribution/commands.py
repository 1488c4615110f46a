"""Show all that ``!command`` in a cell prints, to its last line."""

from __future__ import annotations

import sys

__all__ = ["keep_all_output"]


def keep_all_output() -> None:
    """Make sure that ``!command`` in a cell loses no output. Outside IPython this does nothing.

    IPython runs commands with pexpect. Its ``spawn.read_nonblocking`` (4.9.0) waits for output, then checks whether the
    process has ended. It drops what the process writes between the two (as "Very slow platform"). With more processes
    than processors that sometimes happens. So this reads once more after the end.
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
