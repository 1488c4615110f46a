"""What a worker runs together, and what comes last."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scheduling import SHARED, group_of, in_order


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("notebooks/02_cluster_failover.ipynb::Cell 3", "notebooks/02_cluster_failover.ipynb"),
        ("tests/unit/test_cli.py::test_a[a::b]", "tests/unit/test_cli.py"),
        ("tests/labs/ch06_schema_registry/test_avro.py::test_c", "tests/labs/ch06_schema_registry"),  # a package
    ],
)
def test_a_worker_runs_a_file_or_a_package(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def test_what_shares_brokers_comes_last() -> None:
    def items(*names: str, fixtures: tuple[str, ...] = ()) -> list[SimpleNamespace]:
        return [SimpleNamespace(nodeid=f"tests/unit/{name}", fixturenames=fixtures) for name in names]

    # A single test that shares brokers is enough for its whole file to come last.
    collected = [
        *items("sharing.py::test_1", fixtures=(SHARED,)),
        *items("b.py::test_2", "a.py::test_1", "b.py::test_1", "sharing.py::test_2"),
    ]
    assert [item.nodeid.removeprefix("tests/unit/") for item in in_order(collected)] == [
        "b.py::test_2", "a.py::test_1", "b.py::test_1", "sharing.py::test_1", "sharing.py::test_2",
    ]  # fmt: skip
