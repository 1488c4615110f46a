"""What ``!command`` in a cell prints, to its last line."""

from __future__ import annotations

import sys

__all__ = ["keep_all_output"]


def keep_all_output() -> None:
    """Have ``!command`` in a cell lose nothing of what the command prints. Outside of IPython nothing is done.

    IPython runs commands by pexpect, whose ``spawn.read_nonblocking`` (4.9.0) waits for output first, and then looks whether
    the process has ended: what is written and ended between the two is given up (as "Very slow platform"). With more processes
    than processors that happens now and then. So after the end there is one look more.
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
            return read(self, size, timeout)  # raises it again where nothing is left

    pexpect.spawn.read_nonblocking = read_to_the_end
