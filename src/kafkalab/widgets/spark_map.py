"""A Spark cluster and the streams on it, live."""

from __future__ import annotations

import ipywidgets

from kafkalab.spark.view import SparkView
from kafkalab.widgets.spark_drawing import spark_html, spark_text
from kafkalab.widgets.status import Described, Status

__all__ = ["SparkMap"]


class SparkMap(Status[SparkView]):
    """A live map of a `SparkCluster`: master, workers with their executors, and the streams that this notebook runs there.

    In the course's JupyterLab it's in the panel beside the notebook. When the cluster is stopped, or on `close`, a still copy
    of the last state takes its place in the notebook.

    Examples
    --------
    >>> SparkMap(spark_cluster)  # the last line of a cell shows it  # doctest: +SKIP
    """

    _html, _text = staticmethod(spark_html), staticmethod(spark_text)

    @property
    def cluster(self) -> Described[SparkView]:
        """The cluster that the map shows."""
        return self._service

    def _in_cell(self) -> ipywidgets.Widget:
        return self._show_beside("The live map of the Spark cluster")
