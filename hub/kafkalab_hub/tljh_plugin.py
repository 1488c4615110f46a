"""Hooks of The Littlest JupyterHub. Its installer takes this package with ``--plugin``.

``tljh-config`` changes what they set: the learners' limit is ``limits.memory``, and servers end as ``services.cull`` says. The
rest is below ``kafkalab``: ``sudo tljh-config set kafkalab.instructor_memory 8G``, for example.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from tljh.configurer import load_config
from tljh.hooks import hookimpl

from kafkalab_hub.configuration import CULLING, ClassHub, configure
from kafkalab_hub.network import ADDRESSES, Network

__all__ = ["class_hub", "tljh_config_post_install", "tljh_custom_jupyterhub_config", "tljh_extra_apt_packages"]

_FOLDERS = ("course", "environment", "cache")


@hookimpl  # type: ignore[untyped-decorator]
def tljh_extra_apt_packages() -> list[str]:
    """Name what lets learners reach other machines.

    The installer takes these last. What makes the learners' networks must be there before: the hub doesn't start without it.
    """
    return ["nftables", "procps"]


@hookimpl  # type: ignore[untyped-decorator]
def tljh_config_post_install(config: MutableMapping[str, Any]) -> None:
    """Write limits into the hub's configuration, unless somebody has set them."""
    config.setdefault("limits", {}).setdefault("memory", ClassHub.memory)
    culling = config.setdefault("services", {}).setdefault("cull", {})
    for name, seconds in CULLING.items():
        culling.setdefault(name, seconds)


@hookimpl  # type: ignore[untyped-decorator]
def tljh_custom_jupyterhub_config(c: Any) -> None:
    """Set up the hub."""
    configure(c, class_hub(load_config()))


def class_hub(config: Mapping[str, Any]) -> ClassHub:
    """Return the class that the hub's configuration describes.

    Raises
    ------
    ValueError
        If something below ``kafkalab`` isn't known, or isn't a range of addresses.
    """
    own = dict(config.get("kafkalab") or {})
    network = Network(addresses=IPv4Network(own.pop("addresses", str(ADDRESSES))), internet=bool(own.pop("internet", False)))
    given: dict[str, Any] = {name: Path(own.pop(name)) for name in _FOLDERS if name in own}
    if "instructor_memory" in own:
        given["instructor_memory"] = str(own.pop("instructor_memory"))
    if own:
        known = ", ".join(sorted([*_FOLDERS, "addresses", "instructor_memory", "internet"]))
        raise ValueError(f"tljh-config has kafkalab.{min(own)}, which means nothing. These do: {known}.")
    memory = (config.get("limits") or {}).get("memory") or ClassHub.memory
    return ClassHub(memory=str(memory), network=network, **given)
