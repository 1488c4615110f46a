"""A lab's cells can be run again from section 1 on: the first of them empties the topics, as checks promise."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from kafkalab import Cluster
from kafkalab.checks.ch11_spark_pipeline import NOTEBOOKS
from kafkalab.checks.context import CheckContext
from kafkalab.checks.topics import existing
from kafkalab.spark import begin_anew
from support import create, put

SOLUTIONS = Path(__file__).parents[3] / "solutions/11_spark_pipeline"


@pytest.mark.cluster
def test_topics_that_an_attempt_filled_are_empty_again(clean: Cluster) -> None:
    create(clean, "full", 2)
    create(clean, "bare", 1, 1)
    put(clean, "full", [(None, "left over", 1)])
    begin_anew(clean, "full", "bare", "never created")
    ctx = CheckContext(clean)
    assert (ctx.given("full"), ctx.given("bare")) == (0, 0)
    assert [len(existing(ctx, topic)) for topic in ("full", "bare")] == [2, 1]
    assert {len(partition.replicas) for partition in existing(ctx, "full")} == {3}
    put(clean, "full", [(None, "again", 1)])
    assert ctx.values("full") == ["again"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_first_cell_of_section_1_begins_anew(name: str) -> None:
    cells = nbformat.read(SOLUTIONS / f"11_{name}.ipynb", as_version=4).cells
    start = next(n for n, cell in enumerate(cells) if cell.cell_type == "markdown" and cell.source.startswith("## 1. "))
    first = next(cell.source for cell in cells[start:] if cell.cell_type == "code")
    assert "begin_anew(cluster, " in first
