"""Addresses that open the course elsewhere, made from the repository's address."""

from __future__ import annotations

from html import escape
from urllib.parse import quote, urlsplit

BINDER = "https://mybinder.org/v2"


def binder(repository: str, notebook: str) -> str:
    """Return the address that opens a notebook of the workspace on Binder.

    JupyterLab's folder is the workspace there (binder/start), so `notebook` is a path within it.
    """
    parts = urlsplit(repository)
    path = parts.path.strip("/").removesuffix(".git")
    source = f"gh/{path}" if parts.hostname == "github.com" else f"git/{quote(repository, safe='')}"
    return f"{BINDER}/{source}/HEAD?urlpath={quote(f'lab/tree/{notebook}', safe='')}"


def codespaces(repository: str) -> str | None:
    """Return the address that opens the repository in GitHub Codespaces, or None if it isn't on GitHub."""
    parts = urlsplit(repository)
    path = parts.path.strip("/").removesuffix(".git")
    return f"https://codespaces.new/{path}" if parts.hostname == "github.com" else None


def launch_row(repository: str, notebook: str) -> str:
    """Return the buttons below the title of a notebook's page, as HTML: only those that lead somewhere.

    The address of a class's hub is the reader's own: docs/site/static/launch.js asks for it. The notebook lies beside its page.
    """
    links = [("Download", notebook.rpartition("/")[2], " download")]
    if repository and (address := codespaces(repository)):
        links.insert(0, ("Codespaces", address, ""))
    if repository:
        links.insert(0, ("Binder", binder(repository, notebook), ""))
    anchors = "".join(f'<a href="{escape(address)}"{also}>{words}</a>' for words, address, also in links)
    return (
        f'<div class="launch" role="group" aria-label="Open this notebook">{anchors}'
        f'<span class="hub" data-notebook="{escape(notebook)}" hidden></span></div>'
    )
