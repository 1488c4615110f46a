"""What people who use a keyboard or a screen reader can't use in a page, as axe finds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["assert_own_page_usable", "assert_page_usable", "assert_usable"]

OURS = (
    ".kafkalab-home",
    ".kafkalab-home-button",
    ".kafkalab-panel",
    ".kafkalab-notebook:not(.lm-mod-hidden) .jp-MarkdownOutput",
    ".kafkalab-notebook:not(.lm-mod-hidden) .jp-OutputArea-output",
)
"""What the course puts into JupyterLab's window: its pages, its panels, and what notebooks say and show."""

THEIRS = (".jp-InternalAnchorLink",)
"""What JupyterLab puts in between."""

COLOURS_ARE_THERE = """
    Promise.allSettled(document.getAnimations().filter(one => one instanceof CSSTransition).map(one => one.finished))
"""
"""They change by and by when the theme does."""

IMPACTS = ("critical", "serious", "moderate", "minor")


def assert_usable(page: Page, name: str, measured: Callable[[str], None]) -> None:
    """Report what axe finds in our part of a page of JupyterLab, light and dark. Fail on what is serious or critical."""
    shown = [[selector] for selector in OURS if page.locator(selector).count()]
    context = {"include": shown, "exclude": [[selector] for selector in THEIRS]}
    _assert_usable(page, name, measured, context, lambda scheme: f"data-jp-theme-light='{str(scheme == 'light').lower()}'")


def assert_page_usable(page: Page, name: str, measured: Callable[[str], None]) -> None:
    """Report what axe finds in a page of the site, light and dark. Fail on what is serious or critical."""
    _assert_usable(page, name, measured, None, lambda scheme: f"data-theme='{scheme}'")


def assert_own_page_usable(page: Page, name: str, measured: Callable[[str], None]) -> None:
    """The same of a page that has no theme but the machine's."""
    _assert_usable(page, name, measured, None, lambda _: "lang")


def _assert_usable(
    page: Page, name: str, measured: Callable[[str], None], context: dict[str, Any] | None, theme: Callable[[str], str]
) -> None:
    sentences, barriers = [], []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # the theme follows it
        page.locator(f"[{theme(scheme)}]").first.wait_for(state="attached")  # a body may have no height
        page.evaluate(COLOURS_ARE_THERE)
        found = Axe().run(page, context).response["violations"]
        number: Counter[str] = Counter()
        for violation in found:
            number[violation["impact"]] += len(violation["nodes"])
            if violation["impact"] in IMPACTS[:2]:
                barriers += [f"{scheme}: {violation['id']}: {node['html'][:300]}: {node}" for node in violation["nodes"]]
        sentences.append(f"{scheme} {', '.join(f'{number[impact]} {impact}' for impact in IMPACTS)}")
    page.emulate_media(color_scheme="light")
    measured(f"axe in {name}: {'; '.join(sentences)}")
    assert not barriers, "\n".join(barriers)
