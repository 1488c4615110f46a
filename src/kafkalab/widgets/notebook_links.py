"""Links from a notebook to others of the course."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from kafkalab.course import Content

__all__ = ["course_folder", "notebook_link"]


def course_folder() -> Path | None:
    """Return the folder that this notebook's copy of the course is in, or None: the kernel runs in the notebook's folder."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if Content.is_in(folder)), None)


def notebook_link(path: Path, words: str = "") -> str:
    """Return a link to a notebook, relative to this one's folder. JupyterLab opens it, from a cell and from the panel."""
    target = escape(Path(os.path.relpath(path)).as_posix())
    style = "color:var(--jp-content-link-color, #2678d9)"
    return f'<a href="{target}" data-kafkalab-open="{target}" style="{style}">{escape(words or path.name)}</a>'
