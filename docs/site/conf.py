"""Sphinx's settings for the site. `tools/make_site.py` lays out the pages and calls Sphinx."""

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.append(str(Path(__file__).parents[2] / "tools"))
from launch import launch_row
from make_site import REPOSITORY

project = "kafkalab"
author = "The kafkalab authors"
copyright = author
release = version = metadata.version("kafkalab")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nb_execution_mode = "off"  # outputs are those that the notebooks store
nb_merge_streams = True
myst_heading_anchors = 3
myst_heading_slug_func = "link_notebooks.anchor"  # as in JupyterLab
myst_enable_extensions = []  # notebooks are written in the Markdown that JupyterLab and GitHub show, too
suppress_warnings = ["misc.highlighting_failure"]  # Pygments doesn't know cells with lines that begin with "!"
exclude_patterns = ["**/.ipynb_checkpoints"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = False
default_role = "code"

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["static"]
html_css_files = ["course.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ("course.js", "launch.js", "player.js")]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "collapse_navbar": True,  # a page lists the labs of its own chapter; with all of them Sphinx takes half as long again
    "navbar_persistent": [],  # the sidebar has the search already
    "use_download_button": False,
    "use_fullscreen_button": False,
    "use_repository_button": bool(REPOSITORY),
    **({"repository_url": REPOSITORY, "repository_provider": "github"} if REPOSITORY else {}),  # or one like it
    "show_toc_level": 2,
    "home_page_in_toc": True,
}


def setup(app: Sphinx) -> None:
    """Add the launch buttons to the pages of notebooks."""
    app.connect("html-page-context", _add_launch_row)


def _add_launch_row(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    if page.startswith(("notebooks/", "labs/")):
        context["body"] = context["body"].replace("</h1>", f"</h1>{launch_row(REPOSITORY, f'{page}.ipynb')}", 1)
