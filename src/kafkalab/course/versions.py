"""One version of a file, and how it compares with another: by its bytes, and by what a person wrote in it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalab.errors import KafkaLabError

__all__ = ["Version", "sources", "without_outputs"]


@dataclass(frozen=True)
class Version:
    """What a file holds.

    Attributes
    ----------
    data
        Its bytes.
    digest
        Their hash.
    sources
        A hash of what a person wrote: of a notebook the cells, without outputs and metadata, which JupyterLab
        rewrites when it saves; of any other file the same as `digest`.
    """

    data: bytes
    digest: str
    sources: str

    @classmethod
    def of(cls, data: bytes, name: str) -> Version:
        """The version with these bytes, of a file with that name."""
        digest = _hash(data)
        cells = sources(data) if name.endswith(".ipynb") else None
        return cls(data, digest, digest if cells is None else _hash(json.dumps(cells).encode()))

    @classmethod
    def for_learners(cls, path: Path) -> Version:
        """The version that a learner gets of a file of the course: notebooks without outputs.

        Raises
        ------
        KafkaLabError
            When the file cannot be read.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise KafkaLabError(f"the course's file {path} can't be read: {error.strerror}") from error
        return cls.of(without_outputs(data) if path.suffix == ".ipynb" else data, path.name)


def sources(data: bytes) -> list[tuple[str, str]] | None:
    """Type and text of a notebook's cells, without empty ones; None if this is no notebook.

    JupyterLab adds an empty cell when the last one is run, so an empty cell says nothing about the learner.
    """
    notebook = _parse(data)
    if notebook is None:
        return None
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    except (KeyError, TypeError):
        return None
    return [cell for cell in cells if cell[1].strip()]


def without_outputs(data: bytes) -> bytes:
    """The notebook without outputs and execution counts, as nbformat writes it; what is no notebook stays as it is."""
    notebook = _parse(data)
    if notebook is None or sources(data) is None:
        return data
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
