"""The order of the tests, and the report of what they cost."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import seconds


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("notebooks/02_cluster_failover.ipynb", "chapters"),
        ("tests/unit/test_cli.py", "unit"),
        ("tests/labs/ch02_cluster_failover", "checks and untouched labs"),
        ("tests/docker/test_chapters.py::test_chapter[02]", "chapters on Docker"),
        ("tools/any.py", "other"),
    ],
)
def test_a_group_has_the_kind_of_its_folder(group: str, kind: str) -> None:
    assert seconds.kind_of(group) == kind


def test_every_folder_of_tests_has_a_kind() -> None:
    folders = {path.parent.name for path in (seconds.ROOT / "tests").glob("*/test_*.py")}
    assert folders and {f"tests/{folder}" for folder in folders} <= seconds.KINDS.keys()


def test_a_group_costs_what_its_tests_and_their_setups_take_and_the_costliest_comes_first() -> None:
    reports = [
        SimpleNamespace(nodeid=f"tests/{test}", duration=duration)
        for test, duration in (
            ("unit/test_cli.py::test_a", 0.25),  # set-up and call
            ("unit/test_cli.py::test_a", 1.0),
            ("unit/test_cli.py::test_b", 1.51),
            ("labs/ch06_schema_registry/test_avro.py::test_c", 2.0),  # a package is one group
            ("labs/ch06_schema_registry/test_rest.py::test_d", 3.0),
            ("labs/test_labs.py::test_e[1]", 4.0),  # each test of this file runs alone
            ("labs/test_labs.py::test_e[2]", 5.5),
        )
    ]
    assert list(seconds.measured(reports).items()) == [
        ("tests/labs/test_labs.py::test_e[2]", 5.5),
        ("tests/labs/ch06_schema_registry", 5.0),
        ("tests/labs/test_labs.py::test_e[1]", 4.0),
        ("tests/unit/test_cli.py", 2.8),
    ]


def test_the_costly_ones_come_first_those_that_share_brokers_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def items(*names: str, fixtures: tuple[str, ...] = ()) -> list[SimpleNamespace]:
        return [SimpleNamespace(nodeid=f"tests/unit/{name}", fixturenames=fixtures) for name in names]

    known = tmp_path / "seconds.json"
    known.write_text(json.dumps({"tests/unit/quick.py": 1, "tests/unit/slow.py": 100, "tests/unit/sharing.py": 200}))
    monkeypatch.setattr(seconds, "KNOWN", known)
    # A single test that shares brokers is enough for its whole file to come last.
    found = [
        *items("sharing.py::test_1", fixtures=(seconds.SHARED,)),
        *items(
            "quick.py::test_2", "new.py::test_1", "slow.py::test_2", "quick.py::test_1", "slow.py::test_1", "sharing.py::test_2"
        ),
    ]
    seconds.costly_first(found)
    assert [item.nodeid.removeprefix("tests/unit/") for item in found] == [
        "slow.py::test_2", "slow.py::test_1", "new.py::test_1", "quick.py::test_2", "quick.py::test_1",
        "sharing.py::test_1", "sharing.py::test_2",
    ]  # fmt: skip
    known.unlink()
    seconds.costly_first(found)  # everything costs the same
    assert [item.nodeid for item in found[-2:]] == ["tests/unit/sharing.py::test_1", "tests/unit/sharing.py::test_2"]
