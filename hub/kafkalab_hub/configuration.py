"""Set up a JupyterHub for a class: `configure` in ``jupyterhub_config.py`` is all that it needs besides users."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkalab_hub.network import Network

__all__ = ["CULLING", "UNIT", "ClassHub", "add_culler", "configure", "first_page", "link", "pre_spawn"]

CULLING: Mapping[str, int] = {"timeout": 2 * 3600, "every": 300, "max_age": 10 * 3600}
"""When servers end, in seconds, by the names of The Littlest JupyterHub.

A server ends when nobody used it for two hours: a coffee break, or a lunch, costs no cluster. It also ends when it's ten hours
old, whatever happens in it. So a tab that somebody left open in front doesn't keep a server for ever.
"""

UNIT: Mapping[str, str] = {
    "MemorySwapMax": "0",  # a limit that spills into the swap makes the whole machine slow
    "TasksMax": "8192",  # threads: a chapter with Spark has about 900
    "LimitNOFILE": "65536",
    "ProtectProc": "invisible",  # command lines of others
    "UMask": "0077",  # files are their owner's
}
"""Properties of a learner's systemd unit."""

PORT = 15001
"""Where the hub listens for its learners."""

_FIRST_NOTEBOOK = "notebooks/00_start_here.ipynb"


@dataclass(frozen=True)
class ClassHub:
    """What a class needs of its machine.

    Parameters
    ----------
    course
        A clone of the course that everybody can read. Its ``hub/start`` starts a learner's server.
    environment
        The virtual environment in which the course is installed, with ``jupyterhub-singleuser``. Everybody can read it.
    cache
        What the course downloads: ``kafkalab fetch --all`` fills it once, and learners only read it.
    memory, instructor_memory
        The limit of a learner, and of those who administer the hub: an instructor's server also runs the class's board.
    network
        The learners' networks. None leaves all of them in the machine's network, where each reaches the others' brokers. Kafka
        Connect refuses to start then: whoever reaches it can run programs as its owner.
    """

    course: Path = Path("/opt/kafkalab/course")
    environment: Path = Path("/opt/kafkalab/env")
    cache: Path = Path("/opt/kafkalab/cache")
    memory: str = "3G"
    instructor_memory: str = "8G"
    network: Network | None = field(default_factory=Network)

    def variables(self) -> dict[str, str]:
        """Return the variables that learners' servers get."""
        shared = {} if self.network else {"KAFKALAB_SHARED_MACHINE": "1"}
        return {"KAFKALAB_CACHE": str(self.cache), "KAFKALAB_ENVIRONMENT": str(self.environment), **shared}


def configure(c: Any, hub: ClassHub) -> None:
    """Set up a JupyterHub: what servers run, in which network, with which limits.

    Parameters
    ----------
    c
        JupyterHub's configuration, of ``get_config()``.
    hub
        The class. Its networks are prepared now, so this must run as root.

    Raises
    ------
    kafkalab_hub.network.NetworkError
        If this machine can't give each learner a network.
    """
    c.Spawner.cmd = [str(hub.course / "hub/start")]
    c.Spawner.environment = hub.variables()
    c.Spawner.default_url = first_page()
    c.Spawner.mem_limit = hub.memory
    c.Spawner.start_timeout = 120  # twenty servers start at once
    c.Spawner.http_timeout = 120
    c.Spawner.pre_spawn_hook = lambda spawner: pre_spawn(spawner, hub)
    c.SystemdSpawner.isolate_tmp = True
    if hub.network is not None:
        hub.network.prepare()
        c.JupyterHub.hub_ip = str(hub.network.hub)
        c.JupyterHub.hub_port = PORT
        c.Spawner.post_stop_hook = lambda spawner: hub.network.remove(_learner(spawner))


def pre_spawn(spawner: Any, hub: ClassHub) -> None:
    """Give a server its network and limits, just before it starts.

    It works with SystemdSpawner, with The Littlest JupyterHub's spawner, and with `kafkalab_hub.spawner.NamespaceSpawner`.
    """
    if spawner.user.admin:
        spawner.mem_limit = hub.instructor_memory
    unit = dict(UNIT)
    if hub.network is not None:
        seat = hub.network.create(_learner(spawner))
        spawner.ip = str(seat.inner)
        spawner.namespace = seat.path
        unit["NetworkNamespacePath"] = str(seat.path)
    if hasattr(spawner, "unit_extra_properties"):
        spawner.unit_extra_properties = {**spawner.unit_extra_properties, **unit}


def add_culler(c: Any) -> None:
    """Let a plain JupyterHub end servers as `CULLING` says. The Littlest JupyterHub has a service of its own for that."""
    command = [sys.executable, "-m", "jupyterhub_idle_culler"]
    limits = {"--timeout": "timeout", "--cull-every": "every", "--max-age": "max_age"}
    c.JupyterHub.services.append(
        {"name": "cull-idle", "command": [*command, *(f"{option}={CULLING[name]}" for option, name in limits.items())]}
    )
    scopes = ["list:users", "read:users:activity", "read:servers", "delete:servers"]
    c.JupyterHub.load_roles.append({"name": "cull-idle", "services": ["cull-idle"], "scopes": scopes})


def first_page(notebook: str = _FIRST_NOTEBOOK) -> str:
    """Return where a server opens a notebook of the workspace, below the learner's own address."""
    return f"/lab/tree/{notebook}"


def link(address: str, notebook: str) -> str:
    """Return the address that opens a notebook for whoever follows it: it logs in, starts the server and opens the notebook.

    Parameters
    ----------
    address
        The hub's, such as ``https://hub.example.org``.
    notebook
        A chapter or lab by its file, as in the workspace: ``notebooks/02_cluster_failover.ipynb``.
    """
    return f"{address.rstrip('/')}/hub/user-redirect{first_page(notebook)}"


def _learner(spawner: Any) -> str:
    """Return what names a server: a learner may have several."""
    return f"{spawner.user.name}/{spawner.name}"
