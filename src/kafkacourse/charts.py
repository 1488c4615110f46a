"""Charts that fit beside the cluster panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["panels"]

_WIDTH = 5.0  # inches
_DOTS = 100  # per inch. With the margin that a notebook adds, that's 520 pixels.
_FONT = 9  # points: 12.5 pixels


def panels(number: int = 1, *, height: float = 2.0, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with a number of charts, two side by side, for a column of 520 pixels.

    Parameters
    ----------
    number
        How many charts.
    height
        Height of each row, in inches.
    **options
        What ``pyplot.subplots`` takes, such as ``sharey``.
    """
    import matplotlib.pyplot as plt

    rows, columns = -(-number // 2), min(number, 2)
    with plt.rc_context({"font.size": _FONT, "axes.titlesize": _FONT + 1, "legend.fontsize": _FONT}):
        size = (_WIDTH, rows * height)
        figure, axes = plt.subplots(rows, columns, figsize=size, dpi=_DOTS, layout="constrained", squeeze=False, **options)
    for spare in axes.flat[number:]:
        spare.remove()
    return figure, list(axes.flat[:number])
