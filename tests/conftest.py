"""Fixtures for tests of every kind. The end of the report says what was measured, and what was left out and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import nbval.kernel
import pytest
from jupyter_client.manager import KernelManager

from kafkalab import Cluster
from kafkalab.cli.own_jupyter import prefer_course
from kafkalab.kernel_sockets import kernel_address
from kafkalab.resources import shortage
from kafkalab.services import PostgreSQL
from scheduling import ByGroup, in_order
from support import BACKEND, renew

MEASURED = "measured"

# A member is told with each heartbeat what to do: every 2 s here, every 5 s by default. Not much more often: librdkafka waits one
# interval for the answer, and a member on a busy machine would miss its assignment.
QUICK = {f"group.consumer.{which}heartbeat.interval.ms": 2000 for which in ("", "min.")}

# Spark's JVM keeps its clients when a session is stopped. Each time one of them asks for metadata again, it asks for its topics by
# name, and that would create those anew that a test has deleted.
NOTHING_COMES_BACK = {"auto.create.topics.enable": False}


@pytest.fixture(scope="session")
def three_brokers() -> Iterator[Cluster]:
    with Cluster(brokers=3, settings=QUICK | NOTHING_COMES_BACK, backend=BACKEND) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster(three_brokers: Cluster) -> Iterator[Cluster]:
    """Three local brokers, the same for all modules of a worker; a module finds them as good as new, and may break them."""
    yield three_brokers
    renew(three_brokers)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with PostgreSQL() as server:
        yield server.url


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Call it with a sentence about what was measured, and the report will end with it."""
    return lambda sentence: record_property(MEASURED, sentence)


def pytest_configure(config: pytest.Config) -> None:
    """Let the kernels of nbval be the course's, and listen on sockets: a free port may be taken before they have it."""
    prefer_course()
    sockets = TemporaryDirectory(prefix="kafkalab-")
    config.add_cleanup(sockets.cleanup)
    nbval.kernel.KernelManager = partial(KernelManager, **kernel_address(Path(sockets.name)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByGroup:
    """Let a worker run a whole file or package."""
    return ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what keeps brokers running last, and skip notebooks for which there is too little memory."""
    items[:] = in_order(items)
    for item in items:
        notebook = getattr(item.parent, "nb", None)  # of a cell that nbval runs
        if notebook and (reason := shortage(notebook.metadata)):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was measured, and which tests this machine can't run, just above the summary line."""
    sentences = [
        sentence
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, sentence in report.user_properties
        if name == MEASURED
    ]
    if sentences:
        terminalreporter.section("measured")
        for sentence in sentences:
            terminalreporter.write_line(str(sentence))
    if left_out := os.environ.get("KAFKALAB_LEFT_OUT", "").splitlines():
        terminalreporter.section("left out")
        for line in left_out:
            terminalreporter.write_line(line, yellow=True)
