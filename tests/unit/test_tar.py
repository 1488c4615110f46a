"""Unpacking: nothing lands outside, and old Pythons can do it, too."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from kafkalab.tar import unpack


def archive(name: str) -> tarfile.TarFile:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as draft:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        draft.addfile(entry, io.BytesIO(b"text"))
    content.seek(0)
    return tarfile.open(fileobj=content)


def test_unpack(tmp_path: Path) -> None:
    unpack(archive("a/b"), tmp_path)
    assert (tmp_path / "a/b").read_text() == "text"


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="this Python has no filters")
def test_nothing_lands_outside(tmp_path: Path) -> None:
    with pytest.raises(tarfile.OutsideDestinationError):
        unpack(archive("../b"), tmp_path / "inside")
    assert not (tmp_path / "b").exists()


def test_without_filters_as_in_python_3_11_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extract_all = tarfile.TarFile.extractall

    def without_filter(self: tarfile.TarFile, path: str) -> None:
        extract_all(self, path)

    monkeypatch.setattr(tarfile.TarFile, "extractall", without_filter)
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    unpack(archive("a/b"), tmp_path)
    assert (tmp_path / "a/b").read_text() == "text"
