"""The site, built and opened from its folder, without a server and without a network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import make_site
from accessibility_support import assert_page_usable
from kafkalab.course import find_course
from kafkalab.waiting import wait_until
from support import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1200)]

CHAPTER = "notebooks/02_cluster_failover.html"
LAB = "labs/02_cluster_failover/02_failsafe.html"
REPOSITORY = "https://github.com/somebody/kafka-course"
LARGEST = 40 << 20  # bytes
ELSEWHERE = re.compile(r"https?://(?!127\.0\.0\.1)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. That it's made says that no link within it is broken: Sphinx's warnings are errors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKALAB_REPOSITORY", REPOSITORY)  # for Sphinx, a process of its own
        patch.setattr(make_site, "REPOSITORY", REPOSITORY)
        return make_site.make_site(tmp_path_factory.mktemp("site")).parent


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that may ask no other host for anything."""
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.route(ELSEWHERE, refuse)
    yield page
    page.close()
    assert not asked


def test_it_has_every_chapter_and_lab_and_is_small(folder: Path) -> None:
    names = [Path(name).with_suffix(".html") for name in find_course().content.files() if name.endswith(".ipynb")]
    assert len(names) > 80
    assert not [name for name in names if not (folder / name).exists()]
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < LARGEST


def test_search_works_from_a_folder(page: Page, folder: Path) -> None:
    page.goto((folder / "search.html").as_uri() + "?q=unclean")
    expect(page.locator("#search-results").get_by_role("link", name="Look inside the log", exact=True)).to_be_visible()


def test_a_prediction_is_answered_on_the_page_and_kept(page: Page, folder: Path) -> None:
    page.goto((folder / CHAPTER).as_uri())
    asked = page.locator(".predict").nth(1)
    explained = page.locator(".explained").nth(1)
    assert not explained.evaluate("element => element.open")
    asked.get_by_role("button", name="13 on each").click()
    expect(explained.locator(".guess")).to_have_text("You predicted: 13 on each, as it has a replica of all")
    assert explained.evaluate("element => element.open")

    def still_chosen() -> bool:
        page.reload()
        return asked.get_by_role("button", name="13 on each").get_attribute("aria-pressed") == "true"

    wait_until(still_chosen, PATIENCE, "the choice, which Chromium stores by and by")
    expect(asked.get_by_role("button", name="4 or 5")).to_have_attribute("aria-pressed", "false")


def test_a_guess_can_be_a_number(page: Page, folder: Path) -> None:
    page.goto((folder / CHAPTER).as_uri())
    asked = page.locator(".predict", has=page.locator("input")).first
    name = asked.get_attribute("data-predict")
    asked.locator("input").fill("45")
    asked.locator("input").press("Enter")
    expect(page.locator(f'.explained[data-predict="{name}"] .guess')).to_have_text("You predicted: 45")


@pytest.mark.parametrize("name", [CHAPTER, LAB])
def test_a_notebook_is_opened_elsewhere_from_its_page(name: str, page: Page, folder: Path) -> None:
    page.goto((folder / name).as_uri())
    buttons = page.get_by_role("group", name="Open this notebook")
    binder = urlsplit(buttons.get_by_role("link", name="Binder").get_attribute("href") or "")
    assert (binder.netloc, binder.path) == ("mybinder.org", "/v2/gh/somebody/kafka-course/HEAD")
    notebook = name.replace(".html", ".ipynb")
    assert parse_qs(binder.query)["urlpath"] == [f"lab/tree/{notebook}"]
    expect(buttons.get_by_role("link", name="Codespaces")).to_have_attribute(
        "href", "https://codespaces.new/somebody/kafka-course"
    )
    download = buttons.get_by_role("link", name="Download")
    expect(download).to_have_attribute("download", "")
    # Chromium shows a file of a folder where it downloads one from a server.
    assert unquote(download.evaluate("link => link.href")) == (folder / notebook).as_uri()
    assert not any(cell.get("outputs") for cell in json.loads((folder / notebook).read_bytes())["cells"])


def test_a_class_hub_is_asked_for_once(page: Page, folder: Path) -> None:
    page.goto((folder / CHAPTER).as_uri())
    hub = page.get_by_role("link", name="Class hub")
    expect(hub).to_be_hidden()
    page.get_by_role("button", name="Class hub: give its address").click()
    field = page.get_by_label("Your class hub's address")
    for wrong in ("my hub", "javascript:alert(1)"):
        field.fill(wrong)
        field.press("Enter")
        expect(page.get_by_role("alert")).to_have_text(re.compile("^That's no address of a hub. It begins with https://"))
    expect(hub).to_be_hidden()
    field.fill("https://hub.example.org/kafka/hub/home")  # copied from one of its pages
    field.press("Enter")
    expect(field).to_be_hidden()
    opened = "https://hub.example.org/kafka/hub/user-redirect/lab/tree/{}"
    expect(hub).to_have_attribute("href", opened.format("notebooks/02_cluster_failover.ipynb"))

    def is_kept() -> bool:
        page.goto((folder / LAB).as_uri())
        return hub.is_visible()

    wait_until(is_kept, PATIENCE, "the hub's address, which Chromium stores by and by")
    expect(hub).to_have_attribute("href", opened.format("labs/02_cluster_failover/02_failsafe.ipynb"))
    page.get_by_role("button", name="Change the class hub's address").click()
    field.fill("")
    field.press("Enter")
    expect(hub).to_be_hidden()


def test_a_page_that_is_no_notebook_has_no_buttons(page: Page, folder: Path) -> None:
    page.goto((folder / "docs/use/index.html").as_uri())
    expect(page.locator(".launch")).to_have_count(0)


def test_the_first_page_is_readmes_with_its_film(page: Page, folder: Path) -> None:
    page.goto((folder / "index.html").as_uri())
    film = page.get_by_role("img", name=re.compile("^A failover in twenty seconds"))
    assert film.evaluate("film => film.decode().then(() => film.currentSrc)").endswith("/docs/failover.gif")
    page.emulate_media(reduced_motion="reduce")
    wait_until(lambda: film.evaluate("film => film.currentSrc").endswith("/docs/failover.png"), PATIENCE, "the still")
    expect(page.locator("img[src^=http]")).to_have_count(0)  # badges are other hosts' pictures


def test_a_recorded_failover_plays(page: Page, folder: Path) -> None:
    page.emulate_media(reduced_motion="no-preference")
    page.goto((folder / CHAPTER).as_uri())
    player = page.locator(".player")
    button, slider = player.get_by_role("button"), player.get_by_role("slider")
    shown = player.locator(".moment:visible")
    expect(shown).to_have_count(1)
    expect(button).to_have_text("Play")
    end = float(slider.get_attribute("max") or 0)
    assert float(slider.input_value()) == pytest.approx(end, abs=0.1)
    slider.focus()
    page.keyboard.press("Home")
    expect(shown.locator("img").first).to_have_attribute("alt", re.compile(r"^Brokers: 0 up.*, 1 up.*, 2 up"))
    expect(slider).to_have_attribute("aria-valuetext", "0.0 seconds. All is well.")
    button.click()
    expect(button).to_have_text("Pause")
    expect(shown.locator("img").first).to_have_attribute("alt", re.compile(r"^Brokers: .*2 dead"))
    button.click()
    expect(button).to_have_text("Play")
    at = slider.input_value()
    assert 0 < float(at) < end
    assert player.locator(".record img").last.evaluate("image => image.style.clipPath").startswith("inset(0px ")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) == pytest.approx(float(at) + 0.1)
    slider.focus()
    page.keyboard.press("End")
    assert player.locator(".record img").last.evaluate("image => image.style.clipPath") == ""


def test_with_reduced_motion_a_recording_goes_from_change_to_change(page: Page, folder: Path) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto((folder / CHAPTER).as_uri())
    player = page.locator(".player")
    player.get_by_role("button").click()
    changes = [float(at) for at in player.locator(".moment").evaluate_all("all => all.map(moment => moment.dataset.at)")]
    expect(player.locator("output")).to_have_text(f"{changes[1] + 0.05:.1f} s")


def test_each_picture_has_a_sentence(folder: Path) -> None:
    """Its first image says it for all of them. A file's name is no sentence."""
    pages = [*(folder / "notebooks").glob("*.html"), *(folder / "labs").rglob("*.html")]
    words = [re.search(r'\balt="([^"]*)"', image) for page in pages for image in re.findall(r"<img\b[^>]*>", page.read_text())]
    assert len(words) > 100 and all(words)
    said = [found[1] for found in words if found and found[1]]
    assert not [alt for alt in said if re.search(r"\w\.(png|svg)\b", alt)]
    assert len(said) > 40
    assert not [alt for alt in said if not (alt.endswith(".") and len(alt.split()) > 3)]


def test_nothing_is_wider_than_the_text(page: Page, folder: Path) -> None:
    page.set_viewport_size({"width": 640, "height": 900})
    page.goto((folder / CHAPTER).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 640


@pytest.mark.parametrize(
    "name",
    [
        "index",
        "labs/02_cluster_failover/02_failsafe",
        "docs/architecture",
        # The long ones: axe looks at each colour.
        pytest.param("notebooks/02_cluster_failover", marks=pytest.mark.at_length),
        pytest.param("api/kafkalab.cluster", marks=pytest.mark.at_length),
    ],
)
def test_everybody_can_use_it(name: str, page: Page, folder: Path, measured: Callable[[str], None]) -> None:
    page.goto((folder / f"{name}.html").as_uri())
    assert_page_usable(page, f"the site, {name}", measured)
