"""What a schema registry holds, as it says itself."""

from __future__ import annotations

import json
import urllib.error
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from kafkalab.services.answers import direct

__all__ = ["RegistryView", "SubjectView", "registry_at"]

_SECONDS = 10


@dataclass(frozen=True)
class SubjectView:
    """A subject.

    Attributes
    ----------
    versions
        The numbers of its versions.
    compatibility
        Its own level. Empty if the registry's level applies.
    """

    name: str
    versions: tuple[int, ...]
    compatibility: str = ""


@dataclass(frozen=True)
class RegistryView:
    """A schema registry.

    Attributes
    ----------
    compatibility
        The level for all subjects without a level of their own.
    subjects
        By name.
    """

    compatibility: str
    subjects: tuple[SubjectView, ...]


def registry_at(url: str) -> RegistryView:
    """Ask the registry whose API is at this address.

    Raises
    ------
    OSError
        If it doesn't answer, or refuses.
    """
    subjects = tuple(
        SubjectView(name, tuple(_get(f"{url}/subjects/{quote(name, safe='')}/versions")), _level(url, name))
        for name in sorted(_get(f"{url}/subjects"))
    )
    return RegistryView(_get(f"{url}/config")["compatibilityLevel"], subjects)


def _level(url: str, subject: str) -> str:
    try:
        return str(_get(f"{url}/config/{quote(subject, safe='')}")["compatibilityLevel"])
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return ""
        raise


def _get(url: str) -> Any:
    with direct.open(url, timeout=_SECONDS) as answer:
        return json.load(answer)
