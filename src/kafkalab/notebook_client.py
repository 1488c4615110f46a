"""What every headless run of a notebook wants of nbclient: to know how a kernel ended that ended by itself."""

from __future__ import annotations

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

__all__ = ["ObituaryClient"]


class ObituaryClient(NotebookClient):
    """Keep the exit status of a kernel that ended by itself, before nbclient drops its process.

    Attributes
    ----------
    kernel_status
        The status, or None while the kernel lives or if it's unknown.
    """

    kernel_status: int | None = None

    async def _async_check_alive(self) -> None:
        try:
            await super()._async_check_alive()
        except DeadKernelError:
            process = getattr(self.km.provisioner, "process", None) if self.km else None
            self.kernel_status = process.poll() if process else None
            raise
