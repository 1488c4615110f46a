"""What a bundle says of itself: a ZIP file with a part of the course, for a class.

A bundle of the course is unzipped and set up like a clone. A bundle of solutions is taken up by ``kafkalab release``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal, get_args

__all__ = ["LABEL", "Bundle", "mismatch"]

LABEL = "bundle.json"
"""The file in a bundle that holds its label."""

Kind = Literal["course", "course without solutions", "solutions"]


@dataclass(frozen=True)
class Bundle:
    """A bundle's label.

    Attributes
    ----------
    kafkalab
        The version of the engine and the course that it was made with.
    kind
        What is in it.
    chapters
        The chapters that it was made for, ``03_producer``.
    """

    kafkalab: str
    kind: Kind
    chapters: Sequence[str]

    def as_json(self) -> str:
        """Return the label as it stands in the file."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def read(cls, text: str | bytes) -> Bundle:
        """Read a label.

        Raises
        ------
        ValueError
            If it isn't one.
        """
        try:
            label = cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(f"its {LABEL} isn't a bundle's: {error}") from error
        if label.kind not in get_args(Kind):
            raise ValueError(f"its {LABEL} says {label.kind!r}, and that isn't known here")
        return label


def mismatch(root: Path) -> str | None:
    """Return what to do if a course's files came in a bundle of another version than the installed engine, or None."""
    try:
        made = Bundle.read((root / LABEL).read_text(encoding="utf-8")).kafkalab
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{root / LABEL} can't be read: {error}. Unzip the bundle again."
    if made == (installed := version("kafkalab")):
        return None
    return (
        f"This bundle was made with kafkalab {made}, and {installed} is installed. "
        "Call `tools/setup.sh course` in the bundle's folder."
    )
