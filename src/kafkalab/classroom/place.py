"""The notebook in which this machine's learner last did something. All kernels here know it, by a file beside the seat's."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path, PurePath

from kafkalab.classroom.membership import class_folder
from kafkalab.security.files import private_folder, write_private

__all__ = ["last_notebook", "remember_notebook", "this_notebook"]


def this_notebook() -> str:
    """Return the name of this kernel's notebook, as an event can have it. Empty if no Jupyter server says which it is."""
    name = PurePath(os.environ.get("JPY_SESSION_NAME", "")).stem
    return re.sub(r"[^\w-]+", "-", name)[:80]  # of a copy such as "02_cluster_failover (1)"


def last_notebook() -> str:
    """Return its name, or an empty text if none is known."""
    try:
        return str(json.loads(_path().read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ""


def remember_notebook(notebook: str) -> None:
    """Remember that this is the one now. Raise `OSError` if the folder can't be written."""
    private_folder(class_folder())
    write_private(_path(), json.dumps(notebook))


def _path() -> Path:
    return class_folder() / "notebook.json"  # `membership.forget` deletes it, too
