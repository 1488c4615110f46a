"""Check the Docker engine and the image, and find out what kafkalab needs to know about them."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
from docker.client import DockerClient, from_env
from docker.errors import APIError, DockerException, ImageNotFound

from kafkalab.distribution import KAFKA_VERSION, Report, announce
from kafkalab.errors import BackendUnavailable
from kafkalab.resources import require_disk, require_memory

__all__ = ["can_be_had", "ensure_image", "expect_answers", "image_of", "require_resources", "why_unusable"]

_ANSWER_SECONDS = 10
_MEMORY_OF_A_NODE = 180 << 20
_DISK_OF_A_NODE = 64 << 20


def image_of(version: str) -> str:
    """Return the name of the official image of a Kafka version."""
    return f"apache/kafka:{version}"


def why_unusable() -> str | None:
    """Return why clusters can't run on Docker here, or None if an engine answers and has the image or can pull it."""
    image = image_of(KAFKA_VERSION)
    try:
        client = from_env(timeout=_ANSWER_SECONDS)
    except DockerException as error:
        return f"no Docker engine answers on this machine ({error})"
    try:
        if not _has_or_can_pull(client, image):
            return (
                f"its engine has no image {image} and no registry to pull it from answers "
                "(docker/build-standin-image.sh builds one to stand in for it)"
            )
    except (DockerException, requests.RequestException) as error:
        return f"the Docker engine does not answer as it should ({error})"
    finally:
        client.close()
    return None


@functools.cache  # where no registry can be reached, the engine takes seconds to say so
def can_be_had(image: str) -> bool:
    """Return whether an engine answers that has this image or can pull it."""
    try:
        client = from_env(timeout=_ANSWER_SECONDS)
    except DockerException:
        return False
    try:
        return _has_or_can_pull(client, image)
    except (DockerException, requests.RequestException):
        return False
    finally:
        client.close()


def expect_answers(client: DockerClient) -> None:
    """From now on, requests of this client raise `BackendUnavailable` if the engine doesn't answer any more."""

    def guarded(send: Callable[..., requests.Response]) -> Callable[..., requests.Response]:
        def sent(*request: Any, **settings: Any) -> requests.Response:
            try:
                return send(*request, **settings)
            except requests.ConnectionError:
                raise BackendUnavailable(
                    "the Docker engine doesn't answer any more, so its containers can't be reached. Start it, and run the "
                    "cells from the first one on"
                ) from None

        return sent

    for adapter in client.api.adapters.values():
        adapter.send = guarded(adapter.send)


def _has_or_can_pull(client: DockerClient, image: str) -> bool:
    try:
        client.images.get(image)
    except ImageNotFound:
        try:
            client.images.get_registry_data(image)
        except (DockerException, requests.RequestException):
            return False
    return True


def ensure_image(client: DockerClient, image: str, report: Report = announce) -> None:
    """Pull an image if it's missing.

    Raises
    ------
    BackendUnavailable
        If the pull fails.
    """
    try:
        client.images.get(image)
    except ImageNotFound:
        report(f"pulling the image {image}", 0, 1)
        try:
            client.images.pull(image)
        except APIError as error:
            raise BackendUnavailable(f"the image {image} could not be pulled: {error.explanation}") from error


def require_resources(client: DockerClient, nodes: int, what: str) -> None:
    """Raise `NotEnoughResources` if this many nodes need more memory or disk than is free, where that can be measured."""
    if sys.platform != "linux" or os.environ.get("DOCKER_HOST", "unix://").partition("://")[0] != "unix":
        return  # the engine runs in its own (virtual) machine
    require_memory(nodes * _MEMORY_OF_A_NODE, what)
    folder = Path(client.info()["DockerRootDir"])
    if folder.exists():
        require_disk(folder, nodes * _DISK_OF_A_NODE)
