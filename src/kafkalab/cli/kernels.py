"""Where kernels without a browser listen."""

from __future__ import annotations

from pathlib import Path

__all__ = ["kernel_address"]

_LONGEST = 100  # characters: macOS takes 104, with the number that Jupyter adds for each channel


def kernel_address(folder: Path) -> dict[str, str]:
    """Return settings of a `jupyter_client.KernelManager` whose kernels listen on sockets in a folder.

    By default it looks for free ports and lets go of them, for the kernel to take them. On a busy machine somebody else may
    be faster, and the kernel ends with "Address already in use".

    Parameters
    ----------
    folder
        An existing folder, for kernels of this process only.

    Returns
    -------
    dict
        Its ``transport`` and ``ip``; empty if the folder's path is too long for a socket.
    """
    address = str(folder / "kernel")
    return {"transport": "ipc", "ip": address} if len(address) <= _LONGEST else {}
