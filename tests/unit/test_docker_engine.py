"""A Docker engine that ends while a cluster uses it."""

from __future__ import annotations

import pytest
from docker.client import DockerClient

from kafkalab.cluster.backends.docker_engine import expect_answers
from kafkalab.errors import BackendUnavailable


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "unix:///nowhere/docker.sock"])
def test_an_engine_that_is_gone_is_told_in_a_sentence(address: str) -> None:
    client = DockerClient(base_url=address, version="1.41")
    expect_answers(client)
    with pytest.raises(BackendUnavailable, match="the Docker engine doesn't answer any more.*Start it, and run the cells"):
        client.ping()
    with pytest.raises(BackendUnavailable):
        client.containers.list()
    client.close()
