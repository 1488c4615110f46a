"""Find the notebook that a typed name means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path, PurePath

from kafkalab.course.content import Content
from kafkalab.course.versions import sources
from kafkalab.errors import KafkaLabError

__all__ = ["CHECK", "checks_of", "find_notebook", "labs_of"]

CHECK = re.compile(r"""\bcheck\(\s*["'](\w+)["']""")
"""How a lab's cell calls its check."""


def find_notebook(name: str, content: Content) -> str:
    """Find the chapter or lab that a name means.

    Parameters
    ----------
    name
        A notebook's name or path (``02_failsafe``, ``labs/02_cluster_failover/02_failsafe.ipynb``), the name of a check
        in it (``02_atu_ids``), a chapter's number (``2``, ``02``), or the beginning of a name with or without its
        number (``02_cl``, ``cluster``). If a name fits a chapter and a lab, it means the chapter.
    content
        The course.

    Returns
    -------
    str
        Its name in the course: ``notebooks/….ipynb`` or ``labs/…/….ipynb``.

    Raises
    ------
    KafkaLabError
        If the name fits no notebook, or more than one. The message lists similar names.
    """
    notebooks = [path for path in content.files() if path.endswith(".ipynb")]
    chapters = [path for path in notebooks if path.startswith("notebooks/")]
    labs = [path for path in notebooks if path not in chapters]
    if name.isdigit():
        wanted = name.zfill(2) + "_"
        matches = [path for path in chapters if _stem(path).startswith(wanted)]
        if len(matches) == 1:
            return matches[0]
        raise KafkaLabError(f"there is no chapter {name}; there are {_listed(chapters)}")

    wanted = _stem(name)
    for path in notebooks:
        if wanted in _names(path):
            return path
    checks = {check: path for path in labs for check in checks_of(content.files()[path])}
    if wanted in checks:
        return checks[wanted]
    for kind in (chapters, labs):
        matches = [path for path in kind if wanted and any(known.startswith(wanted) for known in _names(path))]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise KafkaLabError(f"{name!r} can mean several notebooks: {_listed(matches)}")

    full = {word: _stem(path) for path in notebooks for word in _names(path)} | {check: check for check in checks}
    if near := get_close_matches(wanted, full, 4, 0.7):
        meant = dict.fromkeys(full[word] for word in near)  # each once
        raise KafkaLabError(f"there is no chapter or lab {name!r}; did you mean {' or '.join(meant)}?")
    raise KafkaLabError(f"there is no chapter or lab {name!r}; the chapters are {_listed(chapters)}")


def labs_of(chapter: str, content: Content) -> list[str]:
    """Return the labs of a chapter, by the chapter's name in the course."""
    return [path for path in content.files() if path.startswith(f"labs/{_stem(chapter)}/") and path.endswith(".ipynb")]


def checks_of(lab: Path) -> list[str]:
    """Return the names of the checks that the cells of a lab's notebook call."""
    cells = sources(lab.read_bytes()) or []
    return [name for kind, text in cells if kind == "code" for name in CHECK.findall(text)]


def _stem(path: str) -> str:
    return PurePath(path).name.removesuffix(".ipynb")


def _names(path: str) -> tuple[str, str]:
    stem = _stem(path)
    return stem, re.sub(r"^\d\d_", "", stem)


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(map(_stem, paths))
