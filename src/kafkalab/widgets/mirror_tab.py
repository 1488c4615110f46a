"""What the panel says about MirrorMaker."""

from __future__ import annotations

from html import escape
from typing import Protocol

from kafkalab.services.mirror_view import FlowView
from kafkalab.widgets.tab_drawing import heading, muted, state, table, trouble

__all__ = ["mirror_page"]


class Mirror(Protocol):
    """The part of MirrorMaker that its page uses."""

    def describe(self) -> list[FlowView]: ...


def mirror_page(mirror: Mirror) -> str:
    """Return the flows with their connectors and tasks, and the topics that they copy."""
    return "".join(map(_flow, mirror.describe()))


def _flow(view: FlowView) -> str:
    flow = view.flow
    parts = table(("connector", "state"), [(escape(name), state(word)) for name, word in sorted(view.states.items())])
    failures = "".join(trouble(f"{name}: {reason}") for name, reason in view.failures.items())
    columns = ("topic", "copy", f"end in {escape(flow.source)}", f"end in {escape(flow.target)}")
    rows = [(escape(copy.topic), escape(copy.copy), f"{copy.end:,}", f"{copy.copy_end:,}") for copy in view.copies]
    copies = table(columns, rows) if rows else muted("It has copied no topic yet.")
    return heading(f"{flow.source} → {flow.target}") + parts + failures + copies
