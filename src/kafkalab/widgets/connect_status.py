"""What Connect's workers run, live."""

from __future__ import annotations

from kafkalab.services.connect_view import ConnectView
from kafkalab.widgets.connect_drawing import connect_html, connect_text
from kafkalab.widgets.status import Described, Status

__all__ = ["ConnectStatus"]


class ConnectStatus(Status[ConnectView]):
    """A live table of connectors: their tasks with states and workers, the lag of sinks, and why a task failed.

    When the workers are stopped, or on `close`, a still copy of the last state takes its place in the notebook.

    Parameters
    ----------
    connect
        A `ConnectCluster` that was started.

    Examples
    --------
    >>> ConnectStatus(connect)  # the last line of a cell shows it  # doctest: +SKIP
    """

    def __init__(self, connect: Described[ConnectView]) -> None:
        super().__init__(connect, connect_html, connect_text)
