"""What checks ask of Delta tables: their rows and their history, by their logs and without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyarrow import parquet

from kafkalab.checks.context import Unmet

__all__ = ["DeltaTable"]


class DeltaTable:
    """A Delta table in a folder. Partition columns and deletion vectors, which the course's tables lack, aren't read.

    Parameters
    ----------
    lake
        The folder of several tables.
    name
        Its own.

    Raises
    ------
    Unmet
        When there is no such table yet.
    """

    def __init__(self, lake: str, name: str) -> None:
        self.name = name
        self._folder = Path(lake, name)
        logs = sorted((self._folder / "_delta_log").glob("[0-9]*.json"))
        if not logs:
            raise Unmet(f"There is no Delta table {name} in {lake} yet.")
        self._commits = [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]

    @property
    def operations(self) -> list[str]:
        """What made each version, from version 0 on: ``WRITE``, ``UPDATE``, ``RESTORE`` and so on."""
        return [
            next((action["commitInfo"]["operation"] for action in commit if "commitInfo" in action), "")
            for commit in self._commits
        ]

    def rows(self, version: int | None = None) -> list[dict[str, Any]]:
        """Rows as they are now, or were in a version."""
        files: dict[str, None] = {}
        for commit in self._commits[: None if version is None else version + 1]:
            for action in commit:
                if "remove" in action:
                    files.pop(action["remove"]["path"], None)
            files |= {action["add"]["path"]: None for action in commit if "add" in action}
        return [row for file in files for row in parquet.read_table(self._folder / unquote(file)).to_pylist()]
