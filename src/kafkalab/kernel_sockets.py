"""Where kernels without a browser listen."""

from __future__ import annotations

from pathlib import Path

__all__ = ["kernel_address"]

_LONGEST = 100  # characters: macOS takes 104, with the number that Jupyter adds for each channel


def kernel_address(folder: Path) -> dict[str, str]:
    """Return settings of a `jupyter_client.KernelManager` whose kernels listen on sockets in a folder.

    By default the manager looks for free ports and releases them for the kernel. On a busy machine another process may take
    one first, and the kernel ends with "Address already in use".

    Returns
    -------
    dict
        The manager's ``transport`` and ``ip``. If the folder's path is too long for a socket, the kernels listen on ports, and
        what they say is encrypted.
    """
    address = str(folder / "kernel")
    return {"transport": "ipc", "ip": address} if len(address) <= _LONGEST else {"transport_encryption": "auto"}
