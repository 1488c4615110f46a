"""The table of ``make bench``: bounds from above and from below."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench_figures import figures

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
    ("must_be", "values", "kept"),
    [
        ("≤ 4 s", [3.0, 4.0, 9.0], True),
        ("≤ 4 s", [3.0, 4.1, 4.2], False),
        ("≥ 0.8 ×", [0.1, 0.8, 0.9], True),
        ("≥ 0.8 ×", [0.7, 0.79, 2.0], False),
        ("of it", [1e6], True),
    ],
)
def test_the_median_keeps_the_bound_or_not(must_be: str, values: list[float], kept: bool) -> None:
    [figure] = figures(("what", must_be, value) for value in values)
    assert figure.kept is kept
    what, median, _, rounds, bound, verdict = figure.cells()
    assert (what, rounds, bound) == ("what", str(len(values)), "" if must_be == "of it" else must_be)
    assert median.endswith(f" {figure.unit}") and figure.unit in {"s", "×", "of it"}
    assert verdict.endswith("" if must_be == "of it" else "yes" if kept else "NO")


def test_an_unknown_row_is_an_error_that_names_the_rows(bench: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no row is called spped; there are .*start.*registry"):
        bench.main(["start", "spped"])


def test_a_bound_that_is_not_kept_makes_it_fail(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "ROWS", {"slow": lambda: iter([("how long", "≤ 1 s", 2.0), ("speed", "×", 7.0)] * 3)})
    assert bench.main(["slow"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if "how long" in line] == [
        ["│", "how", "long", "│", "2.00", "s", "│", "2.00", "–", "2.00", "│", "3", "│", "≤", "1", "s", "│", "NO", "│"]
    ]
    monkeypatch.setattr(bench, "ROWS", {"quick": lambda: iter([("how long", "≤ 1 s", 1.0)])})
    assert bench.main([]) == 0


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
