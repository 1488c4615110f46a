"""What the course's first page shows: chapters, labs, how far the learner is, and where to go on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kafkalab.course.content import Content
from kafkalab.course.names import checks_of
from kafkalab.course.outline import Outline, outline
from kafkalab.progress import ProgressRecord

__all__ = ["Chapter", "FirstPage", "GoOn", "Lab", "first_page"]


@dataclass(frozen=True)
class Lab:
    """A lab on the page. `path` leads from the workspace to its notebook."""

    path: str
    title: str
    minutes: int | None
    passed: bool


@dataclass(frozen=True)
class Chapter:
    """A chapter on the page.

    Attributes
    ----------
    path
        Its notebook, from the workspace.
    number
        As in its name: ``"02"``.
    title, minutes
        From its first cell.
    sections
        How many sections it has.
    reached
        How many of them the learner has run, at least in part.
    finished
        Whether the learner has run all of them.
    labs
        Its labs, in order.
    """

    path: str
    number: str
    title: str
    minutes: int | None
    sections: int
    reached: int
    finished: bool
    labs: tuple[Lab, ...]


@dataclass(frozen=True)
class GoOn:
    """Where to go on: a notebook, maybe with the heading of a section (``"7 · Spark counts"``), and whether it was begun."""

    path: str
    title: str
    heading: str | None
    begun: bool


@dataclass(frozen=True)
class FirstPage:
    """The page. `go_on` is None if everything is done."""

    chapters: tuple[Chapter, ...]
    go_on: GoOn | None

    def as_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)


@lru_cache(maxsize=1024)
def _outline(path: Path, changed: int) -> Outline:
    return outline(path)


def _mine(path: Path) -> tuple[int, Outline] | None:
    """Return when a notebook of the workspace was last written, and its outline, or None if it can't be read."""
    try:
        changed = path.stat().st_mtime_ns
        return changed, _outline(path, changed)
    except (OSError, ValueError):  # deleted, or edited to something else
        return None


def _course(path: Path) -> Outline:
    return _outline(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _checks(lab: Path, changed: int) -> tuple[str, ...]:
    return tuple(checks_of(lab))


def _lab(name: str, path: Path, record: ProgressRecord) -> Lab:
    about, checks = _course(path), _checks(path, path.stat().st_mtime_ns)
    passed = all(check in record.labs and record.labs[check].passed for check in checks)
    return Lab(name, about.title, about.minutes, passed)


def first_page(content: Content, workspace: Path, record: ProgressRecord) -> FirstPage:
    """Return the page for a learner.

    How far a chapter was run stands in its notebook, once JupyterLab has saved it: the cell that was run last.

    Parameters
    ----------
    content
        The course.
    workspace
        The folder with the learner's copies.
    record
        The learner's progress. A lab has passed when all its checks have.
    """
    files = content.files()
    chapters = []
    for name in (name for name in files if name.startswith("notebooks/") and name.endswith(".ipynb")):
        stem = Path(name).stem
        stems = [lab for lab in content.lab_stems() if content.chapter_of(lab) == stem]
        paths = [f"labs/{stem}/{lab}.ipynb" for lab in stems]
        about, own = _course(files[name]), _mine(workspace / name)
        chapters.append(
            Chapter(
                path=name,
                number=Path(name).name[:2],
                title=about.title,
                minutes=about.minutes,
                sections=len(about.sections),
                reached=min((own and own[1].reached) or 0, len(about.sections)),
                finished=bool(own and own[1].finished),
                labs=tuple(_lab(path, files[path], record) for path in paths),
            )
        )
    return FirstPage(tuple(chapters), _go_on(chapters, workspace))


def _go_on(chapters: list[Chapter], workspace: Path) -> GoOn | None:
    """Return where to go on: in the notebook that was run last, or in what follows it."""
    ran = []
    for place, chapter in enumerate(chapters):
        entries: tuple[Chapter | Lab, ...] = (chapter, *chapter.labs)
        for item in entries:
            own = _mine(workspace / item.path)
            if own and own[1].reached is not None:
                ran.append((own[0], place, item, own[1]))
    if not ran:
        return GoOn(chapters[0].path, chapters[0].title, None, begun=False) if chapters else None
    _, place, item, about = max(ran, key=lambda entry: entry[0])
    if isinstance(item, Chapter) and not item.finished:
        heading = about.sections[item.reached - 1] if about.reached else None
        return GoOn(item.path, item.title, heading, begun=True)
    if isinstance(item, Lab) and not item.passed:
        return GoOn(item.path, item.title, None, begun=True)
    labs_left = [lab for lab in chapters[place].labs if not lab.passed]
    later = [chapter for chapter in chapters[place + 1 :] if not chapter.finished]
    other_labs = [lab for chapter in chapters for lab in chapter.labs if not lab.passed]
    left: list[Chapter | Lab] = [*labs_left, *later, *other_labs]
    return GoOn(left[0].path, left[0].title, None, begun=False) if left else None
