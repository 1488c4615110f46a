"""Labs, each with its checks, as the installed course defines them, and an instructor's own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from kafkalab.checks.requirements import Check
from kafkalab.course import find_course
from kafkalab.errors import KafkaLabError

__all__ = ["Lab", "checks", "find_check", "find_lab", "labs"]


class Lab:
    """A lab: a notebook, and its checks in order.

    Parameters
    ----------
    stem
        The name of its notebook without the suffix, ``NN_name``.
    """

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.checks: list[Check] = []

    def add_check(self, id: str, title: str, *, hints: Sequence[str]) -> Check:
        """Make a check of this lab. See `Check` for the parameters."""
        check = Check(id, title, hints=hints)
        self.checks.append(check)
        return check


def find_lab(stem: str) -> Lab:
    """Return a lab.

    Raises
    ------
    KafkaLabError
        If there is none: the message suggests similar names. If it's an instructor's own, and its checks can't be loaded.
    """
    course = find_course()
    stems = course.content.lab_stems()
    if stem not in stems:
        near = [other for other in stems if other[:2] == stem[:2]] or stems
        raise KafkaLabError(f"there is no lab notebook {stem!r}; did you mean {' or '.join(near)}?")
    own = course.content.own
    if stem in own.stems:
        return _own_lab(stem, own.checks[stem]) if stem in own.checks else Lab(stem)
    # A card and a check import their own module only: chapter 11's alone take PySpark a second.
    lab: Lab = importlib.import_module(course.checks_module(stem)).lab
    return lab


def labs(chapter: str = "") -> Mapping[str, Lab]:
    """Return the labs of a chapter (``05``), or all of them, by their stem, in the order of `Content.lab_stems`.

    An instructor's own labs whose checks can't be loaded are left out. `find_lab` says why.
    """
    content = find_course().content
    found = {}
    for stem in content.lab_stems():
        if stem.startswith(chapter):
            try:
                found[stem] = find_lab(stem)
            except KafkaLabError:
                if stem not in content.own.stems:
                    raise
    return found


def checks(chapter: str = "") -> Mapping[str, Check]:
    """Return the checks of a chapter (``05``), or of all of them, by id, in order."""
    return {check.id: check for lab in labs(chapter).values() for check in lab.checks}


def find_check(id: str) -> Check:
    """Return the check with that id. The stem of a lab with only one check works, too.

    Raises
    ------
    KafkaLabError
        If there is none. The message suggests similar names.
    """
    known = checks(id[:2])
    if id in known:
        return known[id]
    content = find_course().content
    for stem in content.own.stems:
        if id.startswith(stem):
            find_lab(stem)  # raises if this lab's checks can't be loaded
    if id in content.lab_stems():
        own = find_lab(id).checks
        if len(own) == 1:
            return own[0]
        if not own:
            raise KafkaLabError(f"{id} has no checks. Its author puts them into {id}.py, beside the notebook.")
        names = ", ".join(check.id for check in own)
        raise KafkaLabError(f"{id} is a notebook with {len(own)} checks: {names}. Name one of them.")
    near = get_close_matches(id, checks(), n=3) or list(known) or list(checks())
    raise KafkaLabError(f"there is no lab {id!r}; did you mean {' or '.join(near[:3])}?")


def _own_lab(stem: str, path: Path) -> Lab:
    """Load an instructor's module once, so that opened hints stay open."""
    name = f"kafkalab_own_labs.{stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            _require_own(getattr(module, "lab", None), stem)
        except Exception as error:  # whatever somebody else's module does
            raise KafkaLabError(f"the checks of {stem} can't be loaded: {path}: {type(error).__name__}: {error}") from error
        sys.modules[name] = module
    lab: Lab = sys.modules[name].lab
    return lab


def _require_own(lab: object, stem: str) -> None:
    if not isinstance(lab, Lab) or lab.stem != stem:
        raise ValueError(f'it needs lab = Lab("{stem}")')
    # So that none has the name of a check of the course, or of another lab.
    if strange := [check.id for check in lab.checks if check.id != stem and not check.id.startswith(f"{stem}_")]:
        raise ValueError(f"the check {strange[0]} should be called {stem} or {stem}_something")
