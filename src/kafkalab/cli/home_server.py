"""An extension of JupyterLab's server: it tells the course's first page what to show.

The page is a view of our own and no notebook: it needs no kernel, it is fresh each time it's shown, and nothing in it can be
edited or left unsaved. Its other half is the script ``home.js`` among the course's JupyterLab extensions.
"""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from kafkalab.course import find_course, workspace_dir
from kafkalab.course.first_page import FirstPage, first_page
from kafkalab.progress import load

__all__ = ["HomeHandler"]


class HomeHandler(JupyterHandler):
    """Answers ``GET /kafkalab/home`` with the page's content as JSON."""

    @web.authenticated
    async def get(self) -> None:
        """Answer. The files are read beside the server's loop, which other pages wait for."""
        page = await asyncio.to_thread(_page)
        self.finish(page.as_json())


def _page() -> FirstPage:
    course = find_course()
    return first_page(course.content, workspace_dir(), load(), course.problems())


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(app: Any) -> None:
    base = app.web_app.settings["base_url"]
    app.web_app.add_handlers(".*$", [(url_path_join(base, "kafkalab", "home"), HomeHandler)])
