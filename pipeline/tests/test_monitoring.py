"""What the stream tells about itself: logs, metrics, health, and how a signal ends it."""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from truck_pipeline import ending
from truck_pipeline.ending import end_at_once, end_by
from truck_pipeline.endpoint import Endpoint
from truck_pipeline.gate import Gate, GateClosed
from truck_pipeline.health import Health
from truck_pipeline.logs import log, logged_as_json
from truck_pipeline.metrics import Metrics
from truck_pipeline.monitor import Monitor
from truck_pipeline.progress import Progress

REPORT = {
    "batchId": 7,
    "numInputRows": 100,
    "durationMs": {"addBatch": 900, "triggerExecution": 1250},
    "eventTime": {"watermark": "2026-11-01T10:00:00.000Z"},
    "stateOperators": [{"numRowsTotal": 90, "memoryUsedBytes": 4096, "numRowsDroppedByWatermark": 3}],
    "sources": [{"endOffset": {"t": {"0": 60, "1": 40}}, "latestOffset": {"t": {"0": 65, "1": 40, "2": 5}}}],
    "observedMetrics": {"batch": {"events": 80, "dead": 2}},
}
"""A `StreamingQueryProgress` in JSON, as far as it's read. A partition has come since the batch began."""


def test_a_report_of_sparks() -> None:
    progress = Progress.of(REPORT)
    assert (progress.batch, progress.rows, progress.events, progress.dead, progress.late) == (7, 100, 80, 2, 3)
    assert (progress.seconds, progress.lag, progress.state_rows, progress.state_bytes) == (1.25, 10, 90, 4096)
    assert progress.watermark is not None and progress.watermark.isoformat() == "2026-11-01T10:00:00+00:00"


def test_a_report_before_the_first_record() -> None:
    nothing = {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}, "stateOperators": [], "observedMetrics": {}}
    progress = Progress.of(REPORT | nothing | {"sources": [{"endOffset": None, "latestOffset": None}]})
    assert (progress.events, progress.dead, progress.late, progress.lag, progress.watermark) == (0, 0, 0, 0, None)


def numbers(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.text().decode().splitlines() if not line.startswith("#")]
    return {name.removeprefix("truck_pipeline_"): float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_counters_add_up_and_gauges_have_the_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    assert str(numbers(metrics)["watermark_age_seconds"]) == "nan"
    progress = Progress.of(REPORT)
    assert progress.watermark is not None
    for _ in range(2):
        metrics.add(progress)
    monkeypatch.setattr("truck_pipeline.metrics.time", SimpleNamespace(time=lambda: progress.watermark.timestamp() + 60))
    found = numbers(metrics)
    counted = {"records_total": 200, "events_total": 160, "dead_letters_total": 4, "late_events_total": 6}
    last = {"batch": 7, "lag_records": 10, "state_rows": 90, "state_bytes": 4096, "watermark_age_seconds": 60}
    durations = {"batch_seconds_count": 2, "batch_seconds_sum": 2.5, 'batch_seconds_bucket{le="1.0"}': 0}
    assert found.items() >= {**counted, **last, **durations}.items()


def test_a_stream_lives_as_long_as_it_shows_signs() -> None:
    now = [0.0]
    health = Health(300, lambda: now[0])

    def after(seconds: float) -> tuple[bool, bool]:
        now[0] += seconds
        return health.live, health.ready

    assert (after(0), after(299), after(1)) == ((True, False), (True, False), (False, False))
    health.sign(ready=False)
    assert after(1) == (True, False)
    health.sign()
    assert (after(299), after(1)) == ((True, True), (False, False))
    health.sign(ready=False)  # it starts again, with a new schema
    assert after(0) == (True, True)


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_endpoint_answers_prometheus_and_probes() -> None:
    now = [0.0]
    metrics, health = Metrics(), Health(300, lambda: now[0])
    with Endpoint("127.0.0.1", 0, metrics, health) as endpoint:
        assert (get(f"{endpoint.url}/live")[0], get(f"{endpoint.url}/ready")[0]) == (200, 503)
        health.sign()
        assert get(f"{endpoint.url}/ready") == (200, "yes\n")
        now[0] = 300
        assert get(f"{endpoint.url}/live") == (503, "no\n")
        assert "truck_pipeline_lag_records 0.0" in get(f"{endpoint.url}/metrics")[1]
        assert get(f"{endpoint.url}/")[0] == 404
        port = int(endpoint.url.rsplit(":", 1)[1])
        with pytest.raises(ConnectionError, match=f"metrics can't be offered at 127.0.0.1:{port}: Address already in use"):
            Endpoint("127.0.0.1", port, metrics, health)


def test_a_batch_becomes_a_line_numbers_and_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    metrics, health = Metrics(), Health(300)
    monitor = Monitor(metrics, health)
    with logged_as_json():
        monitor.onQueryStarted(SimpleNamespace(runId=1))
        assert not health.ready
        monitor.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(json=json.dumps(REPORT))))
        monitor.onQueryTerminated(SimpleNamespace(runId=1))
        monitor.wait_for_last()
    assert health.ready and numbers(metrics)["batch"] == 7
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    counts = {"batch": 7, "rows": 100, "events": 80, "dead": 2, "late": 3, "seconds": 1.25, "lag": 10}
    assert line["msg"] == "stored a batch" and line["context"].items() >= counts.items()


def test_no_line_shows_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    secrets = {"postgresql://me:s3cret@here", "s3cret", 'quo"ted\\'}
    with logged_as_json(secrets):
        log("connected to postgresql://me:s3cret@here", password='quo"ted\\', more=["s3cret"])
        try:
            raise OSError('the login quo"ted\\ is wrong')
        except OSError:
            logging.getLogger("another").exception("failed with %s", "s3cret")
        logging.getLogger("another").info("not shown")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["msg"] for line in lines] == ["connected to …", "failed with …"]
    assert lines[0]["context"] == {"password": "…", "more": ["…"]} and lines[1]["exception"]["msg"] == "the login … is wrong"
    logging.getLogger("another").error("as before")
    assert '"msg"' not in capsys.readouterr().err


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How the process would have ended at once."""
    statuses: list[int] = []
    monkeypatch.setattr(ending, "os", SimpleNamespace(_exit=statuses.append))
    before = signal.getsignal(signal.SIGTERM)
    yield statuses
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_first_signal_lets_the_batch_end_and_the_second_does_not(ended: list[int]) -> None:
    stopping, batch_done = Event(), Event()

    def stop() -> None:
        stopping.set()
        assert batch_done.wait(10)
        stopped.append("after the batch")

    stopped: list[str] = []
    with end_by(stop, "ending after the batch"):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.wait(10) and not ended
        os.kill(os.getpid(), signal.SIGINT)
        assert ended == [130] and not stopped
        batch_done.set()
    assert stopped == ["after the batch"]


def test_a_stream_that_ends_without_a_signal_is_not_stopped(ended: list[int]) -> None:
    with end_by(lambda: ended.append(1), "ending"):
        pass
    assert not ended


def test_a_closed_gate_lets_no_batch_in() -> None:
    gate, inside, out = Gate(), Event(), Event()

    def batch() -> None:
        with gate:
            inside.set()
            assert out.wait(10)

    first, closing = Thread(target=batch), Thread(target=gate.close)
    first.start()
    assert inside.wait(10)
    closing.start()
    out.set()
    for thread in (first, closing):
        thread.join(10)
    with pytest.raises(GateClosed, match="the next start repeats the batch"):
        batch()
    with pickle.loads(pickle.dumps(gate)):  # another process has an open one
        pass


def test_everything_else_ends_at_once() -> None:
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        with pytest.raises(SystemExit) as end, end_at_once():
            os.kill(os.getpid(), number)
            Event().wait(10)
        assert end.value.code == status
