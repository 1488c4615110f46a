"""Charts of the notebooks fit into a column of 520 pixels."""

from __future__ import annotations

import io
import struct

import matplotlib as mpl
import pytest
from matplotlib.text import Text

from kafkacourse.charts import panels
from notebook_support import NOTEBOOKS


@pytest.fixture(autouse=True)
def without_a_window() -> None:
    mpl.use("agg")


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_charts_fit_with_readable_text(number: int) -> None:
    figure, charts = panels(number, sharey=True)
    assert len(charts) == number == len(figure.axes)
    for axes in charts:
        axes.barh(["with transactions", "without"], [1, 10**6], label="records")
        axes.set(title="records/s", xlabel="thousand records per second")
    figure.legend(*charts[0].get_legend_handles_labels(), loc="outside lower center")
    png = io.BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight")  # as a notebook does
    width, _ = struct.unpack(">II", png.getvalue()[16:24])
    assert 480 <= width <= 520
    points = [float(text.get_fontsize()) for text in figure.findobj(Text) if text.get_text()]
    assert points and min(points) * figure.dpi / 72 >= 12


def test_no_notebook_sizes_a_chart_by_itself() -> None:
    assert not [str(path) for path in NOTEBOOKS if "figsize" in path.read_text(encoding="utf-8")]
