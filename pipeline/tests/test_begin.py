"""A stream begins on a busy Spark Connect server, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import tenacity
from pyspark.errors import PySparkException
from pyspark.sql.streaming import DataStreamWriter

from truck_pipeline.begin import begin

BUSY = PySparkException("INTERNAL:\nPython worker failed to connect back.")
SECONDS = 10.0  # that the server waits for its worker


class Writer:
    """Starts a stream, once it has failed with these errors."""

    def __init__(self, *errors: Exception, endless: bool = False) -> None:
        self.errors = list(errors)
        self.endless = endless
        self.clock = 0.0
        self.calls = 0

    def start(self) -> str:
        self.calls += 1
        self.clock += SECONDS
        if self.errors:
            raise self.errors[0] if self.endless else self.errors.pop(0)
        return "a stream"


def begun(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(tenacity, "time", SimpleNamespace(monotonic=lambda: writer.clock, sleep=lambda seconds: None))
    return begin(cast(DataStreamWriter, writer))


def test_it_begins_when_the_server_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(BUSY, BUSY, BUSY, BUSY)
    assert begun(writer, monkeypatch) == "a stream" and writer.calls == 5


def test_a_server_that_never_has_time_is_asked_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(BUSY, endless=True)
    with pytest.raises(PySparkException, match="connect back"):
        begun(writer, monkeypatch)
    assert writer.clock == 60


def test_what_is_wrong_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(PySparkException("there is no such topic"))
    with pytest.raises(PySparkException, match="no such topic"):
        begun(writer, monkeypatch)
    assert writer.calls == 1
