"""What the course's first page shows: chapters and labs, how far the learner is, where to go on, what to know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kafkalab.course.content import REFERENCES, Content
from kafkalab.course.names import checks_of
from kafkalab.course.outline import Outline, outline
from kafkalab.course.own_labs import OWN
from kafkalab.course.workspace import Workspace
from kafkalab.progress import ProgressRecord

__all__ = ["Chapter", "FirstPage", "GoOn", "Lab", "Left", "OwnPart", "Reference", "first_page"]


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
class Reference:
    """Something to look things up in. `path` leads to it from the workspace."""

    path: str
    title: str


@dataclass(frozen=True)
class OwnPart:
    """The part of the page with an instructor's own labs."""

    title: str
    labs: tuple[Lab, ...]


@dataclass(frozen=True)
class Left:
    """A file that updates have left alone, and why. `path` leads from the workspace to it."""

    path: str
    why: str


@dataclass(frozen=True)
class FirstPage:
    """The page.

    Attributes
    ----------
    chapters
        All of them, in order.
    go_on
        Where to go on, or None if everything is done.
    references
        Those that the workspace has.
    own
        An instructor's own labs, or None if there are none.
    left
        What updates have left alone, because the learner changed it.
    problems
        What is wrong with the course's files, a sentence each.
    """

    chapters: tuple[Chapter, ...]
    go_on: GoOn | None
    references: tuple[Reference, ...]
    own: OwnPart | None
    left: tuple[Left, ...]
    problems: tuple[str, ...]

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
    passed = bool(checks) and all(check in record.labs and record.labs[check].passed for check in checks)
    return Lab(name, about.title, about.minutes, passed)


def first_page(content: Content, workspace: Path, record: ProgressRecord, problems: Iterable[str] = ()) -> FirstPage:
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
    problems
        What to say about the course's files.
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
    references = tuple(Reference(path, title) for path, title in REFERENCES.items() if (workspace / path).is_file())
    own_labs = tuple(_lab(path, files[path], record) for path in (f"labs/{OWN}/{stem}.ipynb" for stem in content.own.stems))
    left = tuple(Left(path, why) for path, why in Workspace(workspace, content).left_alone().items())
    part = OwnPart(content.own.title, own_labs) if own_labs else None
    return FirstPage(tuple(chapters), _go_on(chapters, own_labs, workspace), references, part, left, tuple(problems))


def _go_on(chapters: list[Chapter], own_labs: Iterable[Lab], workspace: Path) -> GoOn | None:
    """Return where to go on: in the notebook that was run last, or in what follows it."""
    ran = []
    entries: list[tuple[int, Chapter | Lab]] = [(-1, lab) for lab in own_labs]  # the chapters come after them
    for place, chapter in enumerate(chapters):
        entries += [(place, chapter), *((place, lab) for lab in chapter.labs)]
    for place, item in entries:
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
    labs_left = [lab for lab in chapters[place].labs if not lab.passed] if place >= 0 else []
    later = [chapter for chapter in chapters[place + 1 :] if not chapter.finished]
    other_labs = [lab for chapter in chapters for lab in chapter.labs if not lab.passed]
    left: list[Chapter | Lab] = [*labs_left, *later, *other_labs]
    return GoOn(left[0].path, left[0].title, None, begun=False) if left else None
