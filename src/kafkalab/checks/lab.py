"""Labs and their checks: requirements that are looked up in the cluster, and hints that open one at a time."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkalab import progress
from kafkalab.checks.sight import Sight
from kafkalab.cluster import Cluster
from kafkalab.errors import KafkaLabError

__all__ = ["Lab", "Requirement", "Unmet", "check", "find_lab", "hint", "labs"]


class Unmet(Exception):
    """Raised by a requirement's probe: the sentence that helps, without giving the answer."""


@dataclass(frozen=True)
class Requirement:
    """One thing that the cluster must show.

    Attributes
    ----------
    says
        What must be so, as a statement that holds no figure that differs between runs.
    probe
        Looks, and raises `Unmet` if it is not so.
    """

    says: str
    probe: Callable[[Sight], None]


@dataclass(frozen=True)
class Lab:
    """A lab: its id (``NN_name``), its title, what is checked, and hints from vague to plain."""

    id: str
    title: str
    requirements: tuple[Requirement, ...]
    hints: tuple[str, ...]


def labs() -> Mapping[str, Lab]:
    """All labs by id: those of the modules ``chapter_NN`` of this package, in order."""
    found = {}
    package = importlib.import_module("kafkalab.checks")
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith("chapter_")):
        for lab in importlib.import_module(f"kafkalab.checks.{module}").LABS:
            found[lab.id] = lab
    return found


def find_lab(lab_id: str) -> Lab:
    """The lab with that id.

    Raises
    ------
    KafkaLabError
        When there is none; the message names those of the same chapter.
    """
    known = labs()
    if lab_id not in known:
        near = [i for i in known if i[:2] == lab_id[:2]] or list(known)
        raise KafkaLabError(f"there is no lab {lab_id!r}; there are {', '.join(near)}")
    return known[lab_id]


def check(lab_id: str, cluster: Cluster, **answers: object) -> bool:
    """Look whether the cluster shows what a lab asks for, print a verdict, and keep it in the learner's progress.

    Parameters
    ----------
    lab_id
        For example ``"02_failsafe"``.
    cluster
        The learner's cluster.
    **answers
        What the cluster cannot tell: an answer that was worked out on paper, say.

    Returns
    -------
    bool
        True if every requirement is met. A requirement that cannot be looked up (no broker answers, say) is unmet.
    """
    lab = find_lab(lab_id)
    sight = Sight(cluster, answers)
    print(f"{lab.id}: {lab.title}")
    met = 0
    for requirement in lab.requirements:
        try:
            requirement.probe(sight)
        except Unmet as unmet:
            print(f"  ✗ {requirement.says}\n      {unmet}")
        except KafkaLabError as error:
            print(f"  ✗ {requirement.says}\n      This could not be looked up: {error}")
        else:
            met += 1
            print(f"  ✓ {requirement.says}")
    passed = met == len(lab.requirements)
    print(f"{met} of {len(lab.requirements)} requirements are met{'. Lab passed.' if passed else '.'}")
    progress.record_lab(lab.id, passed)
    return passed


_opened: dict[str, int] = {}


def hint(lab_id: str) -> None:
    """Print the lab's next hint; after the last one, say so."""
    lab = find_lab(lab_id)
    number = _opened.get(lab_id, 0)
    if number == len(lab.hints):
        print("That was the last hint. The solution is in the folder solutions, under the same name.")
        return
    _opened[lab_id] = number + 1
    print(f"Hint {number + 1} of {len(lab.hints)}: {lab.hints[number]}")
