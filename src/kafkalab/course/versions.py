"""One version of a file, and how to compare it with another: by its bytes, and by what a person wrote in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalab.errors import KafkaLabError

__all__ = ["INSTRUCTOR", "Version", "as_learners_get_it", "is_for_instructors", "sources"]

INSTRUCTOR = "instructor"
"""The tag of cells that only instructors see: neither a lab nor a workspace has them."""


@dataclass(frozen=True)
class Version:
    """The content of a file.

    Attributes
    ----------
    data
        Its bytes.
    digest
        Their hash.
    sources
        A hash of what a person wrote. For a notebook that's the cells, without outputs and metadata, which JupyterLab
        rewrites when it saves. For any other file it's the same as `digest`.
    """

    data: bytes
    digest: str
    sources: str

    @classmethod
    def of(cls, data: bytes, name: str) -> Version:
        """Return the version of a file with these bytes and that name."""
        digest = _hash(data)
        cells = sources(data) if name.endswith(".ipynb") else None
        return cls(data, digest, digest if cells is None else _hash(json.dumps(cells).encode()))

    @classmethod
    def for_learners(cls, path: Path) -> Version:
        """Return the version of a course file that a learner gets: notebooks without outputs and cells for instructors.

        Raises
        ------
        KafkaLabError
            If the file can't be read.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise KafkaLabError(f"the course's file {path} can't be read: {error.strerror}") from error
        return cls.of(as_learners_get_it(data) if path.suffix == ".ipynb" else data, path.name)


def sources(data: bytes) -> list[tuple[str, str]] | None:
    """Return type and text of a notebook's cells, without empty ones, or None if the data isn't a notebook.

    JupyterLab adds an empty cell when you run the last one, so an empty cell doesn't mean that the learner edited
    something.
    """
    notebook = _parse(data)
    if notebook is None:
        return None
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    except (KeyError, TypeError):
        return None
    return [cell for cell in cells if cell[1].strip()]


def is_for_instructors(cell: Mapping[str, Any]) -> bool:
    """Return whether a notebook's cell has the tag `INSTRUCTOR`."""
    return INSTRUCTOR in cell.get("metadata", {}).get("tags", ())


def as_learners_get_it(data: bytes) -> bytes:
    """Return a notebook without outputs, execution counts and cells for instructors, as nbformat writes it.

    Other data is returned unchanged.
    """
    notebook = _parse(data)
    if notebook is None or sources(data) is None:
        return data
    notebook["cells"] = [cell for cell in notebook["cells"] if not is_for_instructors(cell)]
    notebook.get("metadata", {}).pop("widgets", None)
    for cell in notebook["cells"]:
        cell.get("metadata", {}).pop("execution", None)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        notebook = json.loads(data)
    except ValueError:
        return None
    return notebook if isinstance(notebook, dict) else None


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
