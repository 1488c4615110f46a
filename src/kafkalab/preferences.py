"""What the learner chose in the course's displays. It's kept beside the progress."""

from __future__ import annotations

from pathlib import Path

from kafkalab.paths import progress_dir

__all__ = ["checks_as_you_go", "choose_checks_as_you_go"]


def checks_as_you_go() -> bool:
    """Return whether lab cards look after each cell. They don't until somebody chooses it."""
    return _as_you_go().exists()


def choose_checks_as_you_go(chosen: bool) -> None:
    """Keep the choice for all labs. Raise `OSError` if the folder can't be written."""
    if chosen:
        _as_you_go().parent.mkdir(parents=True, exist_ok=True)
        _as_you_go().touch()
    else:
        _as_you_go().unlink(missing_ok=True)


def _as_you_go() -> Path:
    return progress_dir() / "check-as-you-go"
