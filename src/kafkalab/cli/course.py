"""Where the course's notebooks are, and which one is meant by a number or the beginning of a name."""

from __future__ import annotations

from pathlib import Path

import kafkalab
from kafkalab.errors import KafkaLabError

__all__ = ["chapter", "course_dir"]

FIRST = "00_start_here.ipynb"


def course_dir() -> Path:
    """The folder that holds ``notebooks/``: this folder or one above it, else the one kafkalab was installed from.

    Raises
    ------
    KafkaLabError
        When it is nowhere to be found.
    """
    here = Path.cwd()
    # An editable install has the package in src/ of the clone.
    for folder in (here, *here.parents, Path(kafkalab.__file__).parents[2]):
        if (folder / "notebooks" / FIRST).exists():
            return folder
    raise KafkaLabError("the course's notebooks are not here; change into the folder that was cloned, and try again")


def chapter(name: str | None, folder: Path) -> Path:
    """The notebook of a chapter.

    Parameters
    ----------
    name
        Its number (``2`` or ``02``), or the beginning of its name with or without the number (``02_cl``,
        ``cluster``). Without it, the first chapter.
    folder
        The course's folder.

    Raises
    ------
    KafkaLabError
        When no chapter, or more than one, is meant.
    """
    all_chapters = sorted((folder / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    if name is None:
        return folder / "notebooks" / FIRST
    wanted = name.zfill(2) + "_" if name.isdigit() else name.removesuffix(".ipynb")
    found = [path for path in all_chapters if path.stem.startswith(wanted) or path.stem[3:].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(path.stem for path in found or all_chapters)
    if found:
        raise KafkaLabError(f"{name!r} may mean several chapters: {there}")
    raise KafkaLabError(f"there is no chapter {name!r}; there are: {there}")
