"""The head of a broker's column in the live map: its state, and a menu with the verbs that suit it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets

from kafkalab.cluster.view import BrokerState, BrokerView
from kafkalab.widgets.fold import Fold

__all__ = ["GONE", "Act", "BrokerHeader"]

GONE: tuple[BrokerState, ...] = ("dead", "stopped")

Act = Callable[[str, int, Callable[[], None]], None]
"""Run a verb on a broker in the background, and call a function at its end."""

_SYMBOLS: dict[BrokerState, str] = {
    "up": "●",
    "starting": "◌",
    "paused": "‖",
    "isolated": "⊘",
    "stopped": "■",
    "dead": "✕",
}
_TOOLTIPS = {
    "pause": "SIGSTOP: it hangs, but its connections stay open",
    "resume": "SIGCONT: it goes on where it hung",
    "restart": "Start it again with the same id, port and data",
    "kill": "SIGKILL: the process ends at once, without a clean shutdown",
}


def _valid(state: BrokerState) -> tuple[str, ...]:
    if state in GONE:
        return ("restart",)
    return ("resume" if state == "paused" else "pause", "restart", "kill")


class BrokerHeader:
    """A broker or dedicated controller, with its menu unless `act` is None.

    Attributes
    ----------
    widget
        The widget to show.
    """

    def __init__(self, broker: BrokerView, act: Act | None) -> None:
        self._id = broker.id
        self._act = act
        self._state = broker.state
        self._busy = False
        self._buttons = {verb: self._button(verb) for verb in _TOOLTIPS}
        menu = ipywidgets.VBox(list(self._buttons.values()))
        kind = "broker" if broker.address else "controller"
        self._fold = Fold(f"Actions for {kind} {broker.id}", menu)
        self._fold.widget.add_class("kafkalab-menu")
        if act is None:
            self._fold.widget.children = self._fold.widget.children[:1]
        self.widget = self._fold.widget

    def _button(self, verb: str) -> ipywidgets.Button:
        button = ipywidgets.Button(description=f"{verb.capitalize()} {self._id}", tooltip=_TOOLTIPS[verb])
        if verb == "kill":
            button.add_class("kafkalab-danger")
        button.on_click(lambda _: self._do(verb))
        return button

    def show(self, broker: BrokerView, *, narrow: bool) -> None:
        """Show its state. If it's narrow, the number alone names it."""
        self._state = broker.state
        self._fold.show(_html(broker, narrow))
        self._refresh()

    def _refresh(self) -> None:
        valid = _valid(self._state)
        for verb, button in self._buttons.items():
            button.layout.display = None if verb in valid else "none"
            button.disabled = self._busy

    def _do(self, verb: str) -> None:
        if not self._busy and self._act is not None:
            self._busy = True
            self._refresh()
            self._act(verb, self._id, self._done)

    def _done(self) -> None:
        self._busy = False
        self._refresh()


def _html(broker: BrokerView, narrow: bool) -> str:
    # A controller's word is too long for the first line, beside the menu.
    name = str(broker.id)
    if broker.address:
        name = f'<span class="unseen">broker </span>{name}' if narrow else f"broker {name}"
    crown = '<span class="crown" title="active controller" role="img" aria-label="active controller">♛</span>'
    words = "" if broker.address else ' <span class="muted">controller</span>'
    words += f' <span class="muted">rack {escape(broker.rack)}</span>' if broker.rack else ""
    return (
        f'<div class="broker is-{broker.state}{" gone" if broker.state in GONE else ""}"><b>{name}</b>'
        f'<div><span aria-hidden="true" style="color:var(--state)">{_SYMBOLS[broker.state]}</span> {broker.state}'
        f"{' ' + crown if broker.controller else ''}{words}</div></div>"
    )
