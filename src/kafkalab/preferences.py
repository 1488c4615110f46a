"""What the learner chose in the course's displays. It's kept beside the progress."""

from __future__ import annotations

from pathlib import Path

from kafkalab.paths import progress_dir

__all__ = ["checks_as_you_go", "choose_checks_as_you_go", "choose_moving_records", "moving_records"]


def checks_as_you_go() -> bool:
    """Return whether lab cards look after each cell. They don't until somebody chooses it."""
    return _as_you_go().exists()


def choose_checks_as_you_go(chosen: bool) -> None:
    """Keep the choice for all labs. Raise `OSError` if the folder can't be written."""
    _keep(_as_you_go(), chosen)


def moving_records() -> bool:
    """Return whether records move through the live map. They do until somebody stops them."""
    return not _records_at_rest().exists()


def choose_moving_records(chosen: bool) -> None:
    """Keep the choice for all maps. Raise `OSError` if the folder can't be written."""
    _keep(_records_at_rest(), not chosen)


def _keep(choice: Path, chosen: bool) -> None:
    if chosen:
        choice.parent.mkdir(parents=True, exist_ok=True)
        choice.touch()
    else:
        choice.unlink(missing_ok=True)


def _as_you_go() -> Path:
    return progress_dir() / "check-as-you-go"


def _records_at_rest() -> Path:
    return progress_dir() / "records-at-rest"
