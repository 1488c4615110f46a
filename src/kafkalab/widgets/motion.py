"""Records that move through the live map, and the choice to see them."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from kafkalab.preferences import choose_moving_records, moving_records
from kafkalab.widgets.flows import FLOW_STYLE, flows, flows_html
from kafkalab.widgets.rates import AT_REST, Rates

__all__ = ["Motion"]


class Motion:
    """What moves, for the browser to draw.

    Parameters
    ----------
    complain
        Called with a sentence if the choice can't be kept.

    Attributes
    ----------
    widget
        The widget to show. It's empty to the eye: the dots are in an element of their own.
    choice
        The checkbox.
    """

    def __init__(self, complain: Callable[[str], None]) -> None:
        self._complain = complain
        self._flows = ipywidgets.HTML()
        self._rates = AT_REST
        self.widget = ipywidgets.VBox([ipywidgets.HTML(FLOW_STYLE), self._flows])
        self.widget.add_class("kafkalab-motion")
        layout = ipywidgets.Layout(width="auto", margin="0")
        self.choice = ipywidgets.Checkbox(description="Records move", indent=False, value=moving_records(), layout=layout)
        self.choice.add_class("kafkalab-motion-choice")
        self.choice.observe(self._choose, "value")

    def show(self, rates: Rates) -> None:
        """Show what moves now."""
        self._rates = rates
        self._flows.value = flows_html(flows(rates) if self.choice.value else ())

    def _choose(self, _: object) -> None:
        try:
            choose_moving_records(self.choice.value)
        except OSError as error:
            self._complain(f"This choice holds here only: {error.strerror}, {error.filename}")
        self.show(self._rates)
