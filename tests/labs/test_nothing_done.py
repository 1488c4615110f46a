"""Who did nothing passes no check and gets no tick: on a cluster without a topic, with no answer or with blank ones.

`make test-all` runs the untouched labs themselves, with what their given cells do.
"""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

from kafkalab import Cluster
from kafkalab.checks import checks, labs
from support import Verdict

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
BLANK = (None, "", 0, [], {})

# These hold on any new cluster of three brokers: they are where the lab begins, or what it must not lose on its way.
HOLD_FROM_THE_BEGINNING = {
    "02_atu_brokers": {"Brokers 0, 1 and 2 are up"},
    "02_three_brokers": {"A cluster of three brokers is up"},
    "12_elr": {"The cluster uses eligible leader replicas"},
    "12_elr_ledger": {"All nodes are up"},
    "12_upgrade_levels": {"The cluster uses the metadata.version of Kafka 4.3", "All three brokers are up"},
}


def answers(id: str) -> list[str]:
    """Names of what the lab's notebook gives to its check."""
    stem = next(lab.stem for lab in labs().values() if id in {check.id for check in lab.checks})
    [path] = (ROOT / "labs").glob(f"*/{stem}.ipynb")
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if f'check("{id}"' in cell.source]
    calls = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        keyword.arg for call in calls if getattr(call.func, "id", "") == "check" for keyword in call.keywords if keyword.arg
    ]


@pytest.mark.parametrize("id", sorted(checks()))
def test_who_did_nothing_does_not_pass_and_gets_no_tick(
    id: str, clean: Cluster, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = answers(id)
    for given in ({}, *(dict.fromkeys(names, blank) for blank in BLANK if names)):
        passed, printed = verdict(id, clean, **given)
        assert not passed and "✗" in printed, f"{given}: {printed}"
        ticked = {line.removeprefix("  ✓ ") for line in printed.splitlines() if line.startswith("  ✓ ")}
        assert ticked == HOLD_FROM_THE_BEGINNING.get(id, set()), f"{given}: {printed}"
