"""Labs, each with its checks, as the installed course defines them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

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
        If there is none. The message suggests similar names.
    """
    course = find_course()
    stems = course.content.lab_stems()
    if stem not in stems:
        near = [other for other in stems if other[:2] == stem[:2]] or stems
        raise KafkaLabError(f"there is no lab notebook {stem!r}; did you mean {' or '.join(near)}?")
    # A card and a check import their own module only: chapter 11's alone take PySpark a second.
    lab: Lab = importlib.import_module(course.checks_module(stem)).lab
    return lab


def labs() -> Mapping[str, Lab]:
    """Return all labs of the course by their stem, in the order of `Content.lab_stems`."""
    return {stem: find_lab(stem) for stem in find_course().content.lab_stems()}


def checks(chapter: str = "") -> Mapping[str, Check]:
    """Return the checks of a chapter (``05``), or of all of them, by id, in order."""
    stems = find_course().content.lab_stems()
    return {check.id: check for stem in stems if stem.startswith(chapter) for check in find_lab(stem).checks}


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
    if id in find_course().content.lab_stems():
        own = find_lab(id).checks
        if len(own) == 1:
            return own[0]
        names = ", ".join(check.id for check in own)
        raise KafkaLabError(f"{id} is a notebook with {len(own)} checks: {names}. Name one of them.")
    near = get_close_matches(id, checks(), n=3) or list(known) or list(checks())
    raise KafkaLabError(f"there is no lab {id!r}; did you mean {' or '.join(near[:3])}?")
