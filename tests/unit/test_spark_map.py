"""The map of a Spark cluster: what it makes of the cluster's and the driver's words, and that it stands in the panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkalab import SparkMap, wait_until
from kafkalab.spark.view import ExecutorView, QueryView, SparkView, SparkWorkerView, query_in
from kafkalab.widgets.panel import ClusterPanel
from kafkalab.widgets.spark_drawing import spark_html, spark_text
from support import PATIENCE
from widget_support import WIDGET_VIEW, Shown, html, maps_in, show

PROGRESS: dict[str, Any] = {
    "batchId": 4,
    "numInputRows": 250,
    "processedRowsPerSecond": 312.5,
    "sources": [{"endOffset": '{"trucks":{"0":100,"1":150}}', "latestOffset": {"trucks": {"0": 700, "1": 300}}}],
}
WORKERS = (
    SparkWorkerView(0, False),
    SparkWorkerView(1, True, (ExecutorView(1, 1234), ExecutorView(2, None))),
    SparkWorkerView(2, True),
)
VIEW = SparkView(True, 2, WORKERS, "kafkalab", (query_in("<counts>", PROGRESS), QueryView("alarms")))


def test_a_stream_is_where_its_latest_batch_ended() -> None:
    assert query_in("counts", PROGRESS) == QueryView("counts", 4, 250, 312.5, 750)
    assert query_in("counts", None) == QueryView("counts")


@pytest.mark.parametrize("told", [None, "None", "5", {"files": 3}])
def test_a_source_that_gives_no_offsets_has_no_lag(told: object) -> None:
    sources = [*PROGRESS["sources"], {"endOffset": told, "latestOffset": told}]
    progress = PROGRESS | {"sources": sources, "processedRowsPerSecond": float("nan")}
    assert query_in("counts", progress) == QueryView("counts", 4, 250, 0.0, None)


def test_the_card_says_all_in_the_colours_of_the_theme() -> None:
    html, text = spark_html(VIEW), spark_text(VIEW)
    for said in (html, text):
        assert "2 of 3 workers registered" in said and "worker 0" in said and "not running" in said
        assert "executor 1: 1,234 tasks done" in said and "executor 2: starting" in said and "no executor" in said
        assert "750" in said
    assert "&lt;counts&gt;" in html and "<counts>" not in html
    assert "background:var(--jp-layout-color1, #ffffff)" in html and "color:var(--jp-ui-font-color1, #1f2328)" in html
    assert "stream <counts>: batch 4, 250 records, to read: 750" in text and "stream alarms: no batch yet" in text


def test_the_card_says_when_nobody_uses_the_cluster_and_when_nothing_runs() -> None:
    for driver, words in ((None, "No session of this notebook uses it."), ("kafkalab", "No stream runs.")):
        view = SparkView(True, 0, (), driver)
        assert words in spark_html(view) and words in spark_text(view)
    assert "master: not running" in spark_text(SparkView(False, 0, ()))


class FakeSpark:
    """Describes what a test lets it see."""

    name = "spark"

    def __init__(self) -> None:
        self.view = SparkView(True, 3, ())
        self.callbacks: list[Callable[[], None]] = []

    def describe(self) -> SparkView:
        return self.view

    def on_stop(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def stop(self) -> None:
        for callback in self.callbacks:
            callback()


def test_the_panel_shows_it_live_and_a_cell_keeps_a_still_copy(panel: ClusterPanel, shown: Shown) -> None:
    spark = FakeSpark()
    panel.follow(spark, spark.on_stop, SparkMap)
    (own,) = maps_in(panel)
    in_cell = SparkMap(spark)
    show(in_cell)
    assert maps_in(panel) == (in_cell.widget,) and own.comm is None
    ((live,),) = shown.values()
    assert "No session of this notebook uses it." in live["text/plain"] and WIDGET_VIEW in live
    spark.view = VIEW
    wait_until(lambda: "1,234 tasks done" in html(in_cell), PATIENCE, "the map to follow")
    spark.stop()
    ((_, still),) = shown.values()
    assert "executor 1: 1,234 tasks done" in still["text/plain"] and WIDGET_VIEW not in still
    assert "The cluster has stopped." in html(panel.widget)
