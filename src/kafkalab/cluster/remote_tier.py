"""What a cluster with a remote tier offers in addition."""

from __future__ import annotations

import re
from pathlib import Path

from kafkalab.cluster.backends.control import TIER_FULL, TIER_NOWHERE, TIER_STORE, Control

__all__ = ["RemoteTier", "tier_folder"]

_TOPIC_ID = "[A-Za-z0-9_-]{22}"


def tier_folder(store: Path, topic: str, partition: int) -> Path | None:
    """Return the folder of a partition in the remote tier, or None if nothing of it was ever moved there.

    A deleted topic of the same name may have left one, too, which is empty once its files are deleted. The newest counts that
    has files.
    """
    name = re.compile(f"{re.escape(topic)}-{partition}-{_TOPIC_ID}")
    folders = [folder for folder in store.iterdir() if name.fullmatch(folder.name)]
    return max(folders, key=lambda folder: (any(folder.iterdir()), folder.stat().st_mtime_ns), default=None)


class RemoteTier:
    """The remote tier of a running cluster: a folder that all its brokers share. `Disk.remote_tier` gives it."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def files(self, topic: str, partition: int = 0) -> list[Path]:
        """Return the tier's files of a partition in order, for reading only.

        Each segment has a ``.log`` file, its indexes, a producer snapshot and the leader epochs so far. Their names
        begin with the segment's base offset.
        """
        folder = tier_folder(self._control.tier_data(self._control.run.directory / "tier-files"), topic, partition)
        return sorted(folder.iterdir()) if folder is not None else []

    @property
    def is_cut_off(self) -> bool:
        """Whether brokers can't reach it at the moment."""
        return self._control.tier_target == TIER_NOWHERE

    @property
    def is_full(self) -> bool:
        """Whether the tier has no room for another segment at the moment."""
        return self._control.tier_target == TIER_FULL

    def cut_off(self) -> None:
        """Make every read and write of the brokers to the tier fail. Its content stays there."""
        self._point_at(TIER_NOWHERE)

    def reconnect(self) -> None:
        """Undo `cut_off`."""
        self._point_at(TIER_STORE)

    def fill_up(self) -> None:
        """Make the tier refuse new segments as a full disk does, with "No space left on device". Reads still work."""
        self._point_at(TIER_FULL)

    def make_room(self) -> None:
        """Undo `fill_up`."""
        self._point_at(TIER_STORE)

    def _point_at(self, target: str) -> None:
        self._control.point_tier_at(target)
        self._control.tier_target = target
