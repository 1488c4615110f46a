"""What Connect's workers run, live."""

from __future__ import annotations

from kafkalab.services.connect_view import ConnectView
from kafkalab.widgets.connect_drawing import connect_html, connect_text
from kafkalab.widgets.status import Status

__all__ = ["ConnectStatus"]


class ConnectStatus(Status[ConnectView]):
    """A live table of a `ConnectCluster`: tasks with states and workers, the lag of sinks, and why a task failed.

    When the workers are stopped, or on `close`, a still copy of the last state takes its place in the notebook.

    Examples
    --------
    >>> ConnectStatus(connect)  # the last line of a cell shows it  # doctest: +SKIP
    """

    _html, _text = staticmethod(connect_html), staticmethod(connect_text)
