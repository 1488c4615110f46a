"""Which folder of the remote tier holds a partition's files."""

from __future__ import annotations

import os
from pathlib import Path

from kafkalab.cluster.remote_tier import tier_folder


def test_a_deleted_topic_s_empty_folder_does_not_count(tmp_path: Path) -> None:
    old, new = tmp_path / f"readings-0-{'o' * 22}", tmp_path / f"readings-0-{'n' * 22}"
    for folder in (old, new):
        folder.mkdir()
        (folder / "00000000000000000000.log").touch()
    (old / "00000000000000000000.log").unlink()
    os.utime(new, (1, 1))  # the deletion came last
    assert tier_folder(tmp_path, "readings", 0) == new
    assert tier_folder(tmp_path, "readings", 1) is None


def test_without_any_file_the_newest_counts(tmp_path: Path) -> None:
    old, new = tmp_path / f"readings-0-{'o' * 22}", tmp_path / f"readings-0-{'n' * 22}"
    old.mkdir()
    new.mkdir()
    os.utime(old, (1, 1))
    assert tier_folder(tmp_path, "readings", 0) == new
