"""The learner's seat in the class, in the panel: ask for help, say that you're done, see what goes out, leave."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets

from kafkalab.classroom.place import this_notebook
from kafkalab.classroom.presence import current
from kafkalab.widgets.live import button, wide_html

if TYPE_CHECKING:
    from kafkalab.classroom.events import Event

__all__ = ["ClassStrip", "in_words"]

_SHOWN = 8
_STYLE = """<style>
.kafkalab-class { border-left: 3px solid var(--jp-brand-color1, #1976d2); padding: 2px 10px 6px; margin-bottom: 6px; }
.kafkalab-class .widget-toggle-button { width: auto; }
</style>"""


class ClassStrip:
    """A strip for the class that was joined. Empty while there's none.

    Parameters
    ----------
    shell
        The notebook's IPython, or None. Before each of its cells the class hears where the learner works. After each, the strip
        looks whether the learner has joined or left.

    Attributes
    ----------
    widget
        The strip.
    """

    def __init__(self, shell: Any) -> None:
        self._seat = wide_html()
        self._help = self._toggle("Help", "Ask your instructor to come", "help")
        self._done = self._toggle("Done", "Say that you're done here", "done")
        self._sent = wide_html()
        leave = button("Leave the class", lambda _: self._leave())
        self._body = ipywidgets.VBox([self._seat, ipywidgets.HBox([self._help, self._done, leave]), self._sent])
        self._body.add_class("kafkalab-class")
        self.widget = ipywidgets.VBox(layout=ipywidgets.Layout(width="100%"))
        self._followed: object = None
        if shell is not None:
            shell.events.register("pre_run_cell", lambda *_: _works_here())
            shell.events.register("post_run_cell", lambda *_: self.refresh())
        self.refresh()

    def refresh(self) -> None:
        """Show how it is now. Safe to call from any thread."""
        link = current()
        if link is None:
            self.widget.children = ()
            return
        if link is not self._followed:
            self._followed = link
            link.follow(self.refresh)
        state = (
            "Your class has ended." if link.released.ended else "" if link.reachable else "The class can't be reached. Go on."
        )
        self._seat.value = f"{_STYLE}Your seat is <b>{escape(link.seat)}</b>. {state}"
        lines = "".join(f"<li>{escape(in_words(event))}</li>" for event in reversed(link.sent[-_SHOWN:]))
        waits = f" {link.waiting} of them wait until the class can be reached." if link.waiting and not link.reachable else ""
        self._sent.value = (
            f"<details><summary>What has gone out from here</summary>{waits}<ul>{lines}</ul>"
            "Never: names, code, outputs, paths, addresses.</details>"
        )
        self.widget.children = (self._body,)

    def _toggle(self, label: str, tooltip: str, kind: str) -> ipywidgets.ToggleButton:
        toggle = ipywidgets.ToggleButton(description=label, tooltip=tooltip)
        toggle.observe(lambda change: self._pressed(kind, bool(change["new"])), "value")
        return toggle

    def _pressed(self, kind: str, raised: bool) -> None:
        if (link := current()) is not None:
            from kafkalab.classroom.events import Event

            link.send(Event(kind, this_notebook() or "notebook", raised=raised))  # type: ignore[arg-type]
            self.refresh()

    def _leave(self) -> None:
        if (link := current()) is not None:
            link.leave()
        self.refresh()


def _works_here() -> None:
    if (link := current()) is not None:
        link.works_here()


def in_words(event: Event) -> str:
    """Return what an event says, and nothing more than it says."""
    if event.kind == "checked":
        return f"{event.subject} was checked: {len(event.met)} met, {len(event.unmet) + len(event.waiting)} not yet"
    if event.kind == "voted":
        what = f"option {'ABCDEFGH'[event.option]}" if event.option is not None else f"{event.number:g}"
        return f"{event.subject}: {what}, round {event.round}"
    if event.kind == "measured":
        return f"{event.subject}: measured {event.number:g}" if event.number is not None else f"{event.subject}: run"
    if event.kind == "alive":
        return f"you work in {event.subject}"
    return f"{event.kind} in {event.subject}: {'yes' if event.raised else 'no more'}"
