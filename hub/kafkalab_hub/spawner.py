"""A spawner for machines without systemd, such as a container: each learner's server in its own network and control group."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyterhub.spawner import LocalProcessSpawner

from kafkalab_hub.control_group import ControlGroup

__all__ = ["NamespaceSpawner"]

_CLONE_NEWNET = 0x40000000


class NamespaceSpawner(LocalProcessSpawner):  # type: ignore[misc]  # JupyterHub has no types
    """Start a learner's server as the system's user of that name. The hub must run as root.

    The memory limit is ``mem_limit``, for all of the learner's processes together. When the server stops, all of them end.

    Attributes
    ----------
    namespace
        The file of the learner's network namespace, which the class's hook makes. None leaves the server in the machine's
        network.
    """

    namespace: Path | None = None

    @property
    def control_group(self) -> ControlGroup:
        """The server's control group."""
        return ControlGroup(f"kafkalab-{self.user.id}-{self.name}" if self.name else f"kafkalab-{self.user.id}")

    async def start(self) -> Any:
        """Make the control group, and start the server in it."""
        self.control_group.create(self.mem_limit)
        return await super().start()

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """Return what the child does before it becomes the learner's server: only root may enter a namespace and a group."""
        become_learner = super().make_preexec_fn(name)

        def enter() -> None:
            self.control_group.enter()
            if self.namespace is not None:
                _enter_network(self.namespace)
            become_learner()

        return enter

    async def stop(self, now: bool = False) -> None:
        """Stop the server, and end whatever else the learner left running."""
        await super().stop(now)
        self.control_group.remove()


def _enter_network(namespace: Path) -> None:
    with namespace.open() as file:
        if hasattr(os, "setns"):  # since Python 3.12
            os.setns(file.fileno(), _CLONE_NEWNET)
            return
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"can't enter {namespace}")
