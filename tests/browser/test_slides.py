"""The decks, opened from their files without a server and without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from make_slides import HEIGHT, PATIENCE, WIDTH, make_slides, print_deck

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
NUMBERS = [path.stem[:2] for path in NOTEBOOKS]
MOST_LINES = 15

# Shows each slide with all of its fragments, and says what's on it. Boxes are those of text and pictures, in pixels.
LOOK = """() => Reveal.getSlides().map((slide) => {
  const { h, v } = Reveal.getIndices(slide);
  Reveal.slide(h, v);
  slide.querySelectorAll(".fragment").forEach((fragment) => fragment.classList.add("visible"));
  const box = (rect) => [rect.left, rect.top, rect.right, rect.bottom].map(Math.round);
  const shown = [...slide.children].filter((child) => !child.matches(".notes"));
  const words = (element) => { const range = new Range(); range.selectNodeContents(element); return [...range.getClientRects()]; };
  const texts = shown.filter((child) => !child.matches(".still")).map((child) => words(child).filter((r) => r.width));
  return {
    text: shown.map((child) => child.textContent).join("\\n"),
    boxes: texts.flat().map(box),
    stills: shown.filter((child) => child.matches(".still")).map((still) => box(still.getBoundingClientRect())),
    inside: shown.filter((child) => child.matches(".still"))
      .flatMap((still) => [...still.querySelectorAll("img, td, pre")].map((part) => part.getBoundingClientRect()))
      .filter((rect) => rect.width).map(box),
    blocks: texts.filter((rects) => rects.length)
      .map((rects) => [Math.min(...rects.map((r) => r.top)), Math.max(...rects.map((r) => r.bottom))]),
    lines: new Set(texts.flat().map((rect) => Math.round(rect.bottom / 12))).size,
    smallest: Math.min(...shown.filter((child) => !child.matches(".still"))
      .map((child) => parseFloat(getComputedStyle(child).fontSize))),
  };
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slides")
    make_slides(folder)
    return folder


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that may ask no host for anything."""
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.route(re.compile(r"^(?!file:|data:|about:|blob:)"), refuse)
    yield page
    page.close()
    assert not asked


def open_deck(page: Page, deck: Path) -> None:
    page.goto(deck.as_uri(), timeout=PATIENCE)
    page.wait_for_function("window.Reveal?.isReady()", timeout=PATIENCE)


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=[] if number == "02" else pytest.mark.at_length) for number in NUMBERS]
)
def test_a_deck_shows_each_heading_and_cuts_nothing_off(number: str, page: Page, folder: Path) -> None:
    open_deck(page, folder / f"{number}.html")
    slides = page.evaluate(LOOK)
    text = "\n".join(slide["text"] for slide in slides)
    [notebook] = [path for path in NOTEBOOKS if path.stem.startswith(number)]
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    markdown = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    headings = [re.sub("[`*]", "", heading) for heading in re.findall(r"(?m)^#{1,3} (.+)$", markdown)]
    assert headings and not [heading for heading in headings if heading not in text]

    for slide in slides:
        what = (number, slide["text"][:60])
        for left, top, right, bottom in slide["boxes"] + slide["stills"]:
            assert left >= 0 and top >= 0 and right <= WIDTH and bottom <= HEIGHT, what
        assert slide["smallest"] >= 28, what
        assert slide["lines"] <= MOST_LINES, what
        blocks = sorted(slide["blocks"])
        for (_, above), (below, _) in zip(blocks, blocks[1:], strict=False):
            assert above <= below + 6, (*what, "two texts overlap")
        frames = slide["stills"]
        for left, top, right, bottom in slide["inside"]:  # nothing sticks out of its picture's box, or scrolls in it
            assert any(x <= left + 2 and y <= top + 2 and right <= r + 2 and bottom <= b + 2 for x, y, r, b in frames), what
        for _, top, _, bottom in frames:
            assert bottom - top >= 24, (*what, "a picture nobody can see")
            for begins, ends in slide["blocks"]:
                assert ends <= top + 6 or begins >= bottom - 6, (*what, "a picture and a text overlap")


def test_the_speaker_sees_the_notes(page: Page, folder: Path) -> None:
    open_deck(page, folder / "02.html")
    page.keyboard.press("ArrowRight")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    opened.value.get_by_text("since an address is a connection").wait_for(timeout=PATIENCE)


def test_a_printed_deck_has_a_page_for_each_slide(browser: Browser, page: Page, folder: Path) -> None:
    open_deck(page, folder / "00.html")
    slides = page.evaluate("Reveal.getTotalSlides()")
    printed = print_deck(folder / "00.html", browser).read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == slides
    assert b"/MediaBox [0 0 960 540]" in printed  # 1280 × 720 pixels, in points
