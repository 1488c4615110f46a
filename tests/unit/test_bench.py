"""The table of ``make bench``: bounds from above and from below."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "tools" / "bench.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_tool", BENCH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("bound", "at_least", "values", "kept"),
    [
        (4, False, [3.0, 4.0, 9.0], True),
        (4, False, [3.0, 4.1, 4.2], False),
        (0.8, True, [0.1, 0.8, 0.9], True),
        (0.8, True, [0.7, 0.79, 2.0], False),
        (None, False, [1e6], True),
    ],
)
def test_the_median_keeps_the_bound_or_not(
    bench: ModuleType, bound: float | None, at_least: bool, values: list[float], kept: bool
) -> None:
    figure = bench.Figure("what", bound, "s", values, at_least)
    assert figure.kept is kept
    says = "" if bound is None else "yes" if kept else "NO"
    assert figure.cells()[-1].endswith(says)
    assert figure.cells()[-2].startswith({None: "", 4: "≤", 0.8: "≥"}[bound])


def test_an_unknown_row_is_an_error_that_names_the_rows(bench: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no row is called spped; there are .*start.*registry"):
        bench.main(["start", "spped"])


def test_figures_are_saved_for_other_tools(bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = bench.Figure("how long", 1.0, "s", [2.0, 3.0, 4.0])
    monkeypatch.setattr(bench, "ROWS", {"slow": lambda: [slow]})
    saved = tmp_path / "figures.json"
    assert bench.main(["--save", str(saved), "slow"]) == 1
    [figure] = json.loads(saved.read_text())["figures"]
    assert figure == {"what": "how long", "bound": 1.0, "unit": "s", "values": [2.0, 3.0, 4.0], "at_least": False}


@pytest.mark.parametrize(
    ("notebook", "bound"),
    [
        ("notebooks/05_log_and_replication.ipynb", 100),
        ("notebooks/10_streams.ipynb", 110),
        ("notebooks/03_producer.ipynb", 120),
        ("solutions/05_log_and_replication/05_quotas.ipynb", 30),
        ("solutions/11_spark_pipeline/11_once.ipynb", 35),
        ("solutions/12_kafka_4/12_rolling_upgrade.ipynb", 75),
        ("solutions/02_cluster_failover/02_atu.ipynb", 120),
    ],
)
def test_each_notebook_has_its_bound(bench: ModuleType, notebook: str, bound: int) -> None:
    assert bench.seconds_allowed(Path(notebook)) == bound
