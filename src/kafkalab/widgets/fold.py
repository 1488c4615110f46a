"""Something folded away, which stays as the reader left it while what is in it changes."""

from __future__ import annotations

import ipywidgets

__all__ = ["Fold"]


class Fold:
    """A line to open and close, with a widget below that shows only while it's open.

    The browser replaces the whole of an HTML widget whenever its value changes, and would close a ``<details>`` in it.
    So the ``<details>`` is in a widget of its own whose value never changes. It lies over the label, and the style sheet
    shows what is folded by its state.

    Parameters
    ----------
    says
        What it opens, for screen readers. It doesn't change either.
    content
        What is folded.

    Attributes
    ----------
    widget
        The widget to show.
    """

    def __init__(self, says: str, content: ipywidgets.Widget) -> None:
        self._label = ipywidgets.HTML()
        self._label.add_class("kafkalab-label")
        opener = ipywidgets.HTML(f'<details><summary aria-label="{says}"></summary></details>')
        opener.add_class("kafkalab-opener")
        content.add_class("kafkalab-folded")
        self.widget = ipywidgets.VBox([self._label, opener, content])
        self.widget.add_class("kafkalab-fold")

    def show(self, label: str) -> None:
        """Write the label, in HTML. Without one, the fold isn't shown."""
        self._label.value = label
        self.widget.layout.display = None if label else "none"
