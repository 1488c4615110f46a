"""Copying a node's data folder while the node works on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkalab.cluster.backends.processes import copy_changing_tree


def test_what_is_removed_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    for name in ("gone-0.1f-delete", "kept-0"):
        (data / name).mkdir(parents=True)
        (data / name / "00000000000000000000.log").write_bytes(b"records")
    (data / "kept-0" / "00000000000000000000.log.deleted").touch()
    scandir = os.scandir

    def behind_its_back(folder: os.PathLike[str]) -> object:
        """Kafka removes a folder when its parent has been read, and a file when its folder has been read."""
        if Path(folder).name == "gone-0.1f-delete":
            (data / "gone-0.1f-delete" / "00000000000000000000.log").unlink()
            (data / "gone-0.1f-delete").rmdir()
        entries = list(scandir(folder))
        if Path(folder).name == "kept-0":
            (data / "kept-0" / "00000000000000000000.log.deleted").unlink()
        return _Entries(entries)

    monkeypatch.setattr(os, "scandir", behind_its_back)
    copy_changing_tree(data, tmp_path / "copy")
    monkeypatch.undo()
    found = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")}
    assert found == {"kept-0", "kept-0/00000000000000000000.log"}


class _Entries:
    def __init__(self, entries: list[os.DirEntry[str]]) -> None:
        self._entries = iter(entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> os.DirEntry[str]:
        return next(self._entries)


def test_other_errors_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()

    def refused(folder: object) -> None:
        raise PermissionError(folder)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(PermissionError):
        copy_changing_tree(tmp_path / "data", tmp_path / "copy")
