"""The space-time diagram: who sent which record, its place in the log, who got it, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets

from kafkalab.cluster.view import Fault
from kafkalab.history.verdict import Verdict
from kafkalab.widgets.live import Live, wide_html
from kafkalab.widgets.palette import LIGHT, THEMED, Palette
from kafkalab.widgets.picture import Picture, flow, phrases
from kafkalab.widgets.space_time_drawing import draw_space_time, title
from kafkalab.widgets.space_time_layout import lay_out

__all__ = ["SpaceTime"]


class SpaceTime(Live):
    """Draw a verdict. Time runs to the right, and each producer, partition and consumer has a line.

    A record is an arrow from its send to its place in the log, and on to each poll that returned it. Offending records
    are coloured and labelled, and the others are pale. Of many similar records, only the first and the last are drawn,
    with a band between them. So the axis isn't to scale.

    Parameters
    ----------
    verdict
        The result of `kafkalab.judge`.
    faults
        Faults to mark, such as ``cluster.nodes.faults``.

    Examples
    --------
    >>> SpaceTime(judge(sent=ledger, log=records), faults=cluster.nodes.faults)  # doctest: +SKIP
    """

    def __init__(self, verdict: Verdict, faults: Iterable[Fault] = ()) -> None:
        self._words = repr(verdict)
        self._layout, self._faults = lay_out(verdict), tuple(faults)
        super().__init__(
            ipywidgets.VBox([wide_html(self._html(THEMED))], layout=ipywidgets.Layout(width="100%", max_width="1100px"))
        )

    def snapshot(self) -> Picture:
        """Return the diagram as a still picture."""
        return Picture(self._html(LIGHT), self._words)

    def _html(self, palette: Palette) -> str:
        drawing = draw_space_time(self._layout, self._faults, palette)
        picture = flow([drawing], self._words, palette) if drawing else ""
        return f"<div>{phrases(title(self._layout.verdict))}{picture}</div>"

    def _still(self) -> dict[str, str]:
        return self.snapshot().bundle()
