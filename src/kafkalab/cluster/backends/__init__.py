"""The three back ends, and the choice between them."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.spec import ClusterSpec
from kafkalab.errors import BackendUnavailable
from kafkalab.lifeline import Run

__all__ = ["BackendChoice", "choose", "preferred"]

_NAMES = ("local", "docker", "attached")


@dataclass(frozen=True)
class BackendChoice:
    """A chosen back end: its name, and how to make one for a spec and a run."""

    name: str
    make: Callable[[ClusterSpec, Run], Access]

    def __call__(self, spec: ClusterSpec, run: Run) -> Access:
        return self.make(spec, run)


def choose(
    name: str | None, bootstrap_servers: str | None = None, client_settings: Mapping[str, object] | None = None
) -> BackendChoice:
    """Choose a back end.

    Parameters
    ----------
    name
        ``local``, ``docker`` or ``attached``. None takes ``KAFKALAB_BACKEND`` if it's set, else Docker where it works,
        else local.
    bootstrap_servers, client_settings
        For ``attached``. By default ``KAFKALAB_BOOTSTRAP_SERVERS`` and ``KAFKALAB_CLIENT_SETTINGS`` (a JSON object of
        librdkafka settings) apply.

    Raises
    ------
    BackendUnavailable
        If the name is unknown, or this machine can't use the back end. The message says why and what to do.
    """
    name = name or preferred()
    match name:
        case "local":
            from kafkalab.cluster.backends.local import LocalBackend

            return BackendChoice(name, LocalBackend)
        case "docker":
            if reason := _docker_reason():
                raise BackendUnavailable(f"Docker was asked for, but {reason}. Without it, use backend='local'.")
            from kafkalab.cluster.backends.docker import DockerBackend

            return BackendChoice(name, DockerBackend)
        case "attached":
            from kafkalab.cluster.backends.attached import AttachedBackend

            servers = bootstrap_servers or os.environ.get("KAFKALAB_BOOTSTRAP_SERVERS")
            if not servers:
                raise BackendUnavailable(
                    "no cluster to attach to: use Cluster.attached('host:port'), or name it in KAFKALAB_BOOTSTRAP_SERVERS"
                )
            settings = client_settings or _client_settings()
            return BackendChoice(name, functools.partial(AttachedBackend, bootstrap_servers=servers, client_settings=settings))
    raise BackendUnavailable(f"there is no back end {name!r}; there are {', '.join(_NAMES)}")


def preferred() -> str:
    """Return the name of the back end that clusters get which don't name one."""
    return os.environ.get("KAFKALAB_BACKEND") or ("docker" if _docker_reason() is None else "local")


def _client_settings() -> dict[str, object]:
    text = os.environ.get("KAFKALAB_CLIENT_SETTINGS", "{}")
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise BackendUnavailable(f"KAFKALAB_CLIENT_SETTINGS isn't JSON: {error}") from error
    if not isinstance(settings, dict):
        raise BackendUnavailable(f'KAFKALAB_CLIENT_SETTINGS must be a JSON object such as {{"client.id": "me"}}, not {text}')
    return settings


def _docker_reason() -> str | None:
    """Return why Docker doesn't work here, or None if it does."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://") and not os.path.exists(host.removeprefix("unix://")):
        return "no Docker engine answers on this machine"  # found out without loading Docker's client
    from kafkalab.cluster.backends.docker_engine import why_unusable

    return why_unusable()
