"""On a machine with many processors, of which a learner may use two, nothing sizes itself by the machine."""

from __future__ import annotations

import pytest

from kafkalab import Cluster
from kafkalab.environment import JAVA_OPTIONS
from kafkalab.lifeline import marked_processes
from support import living

MORE = 20  # threads: a few of Java's own depend on it


def threads_of_a_broker() -> int:
    with Cluster(1, backend="local") as cluster:
        found = living(marked_processes(cluster.nodes.run.id), lambda process: (process.name(), process.num_threads()))
        [threads] = [number for name, number in found if name == "java"]
        return threads


@pytest.mark.cluster
@pytest.mark.at_length
def test_a_broker_has_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAVA_OPTIONS, "-XX:ActiveProcessorCount=2")
    with_two = threads_of_a_broker()
    monkeypatch.setenv(JAVA_OPTIONS, "-XX:ActiveProcessorCount=64")
    assert threads_of_a_broker() < with_two + MORE
