"""The dots over the live map, in a browser: the extension with a page that stands for a map."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from kafkalab.cli.own_jupyter import SETTINGS
from kafkalab.widgets.flows import FLOW_STYLE, flows, flows_html, leader_spot, producers_spot, reader_spot
from kafkalab.widgets.rates import AT_REST, Rates

SCRIPT = SETTINGS / "labextensions/kafkalab-motion/static/motion.js"
PLACE = ("orders", 0)
RATES = Rates({PLACE: 5_000.0}, {("mygroup", PLACE): 50.0})
ROWS = (
    f'<p><b {producers_spot("orders")}>producers</b> <i class="leader moves" style="position:relative" {leader_spot(PLACE)}>0</i>'
    f"</p><details open><summary>group</summary><i {reader_spot('mygroup', PLACE)}>0</i></details>"
)
MAP = f'{FLOW_STYLE}<div class="kafkalab-map" style="zoom:1.4"><div id="rows">{ROWS}</div><div id="flows"></div></div>'
DOTS = ".kafkalab-dots > span"
MARK = "getComputedStyle(document.querySelector('.leader'), '::before').content"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def show(page: Page, rates: Rates) -> None:
    """Say what moves, as the kernel does: by an element in place of the last one."""
    page.evaluate("html => { document.getElementById('flows').innerHTML = html }", flows_html(flows(rates)))


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.clock.install()
    page.set_content(MAP)
    page.add_script_tag(path=SCRIPT)
    page.evaluate("window._JUPYTERLAB['kafkalab-motion'].get().then(plugin => plugin().default.activate())")
    yield page
    page.close()


def test_more_dots_run_where_more_records_do_from_one_place_to_the_other(page: Page) -> None:
    show(page, RATES)
    expect(page.locator(f"{DOTS}.written")).to_have_count(4)
    expect(page.locator(f"{DOTS}.read")).to_have_count(2)
    expect(page.locator(".kafkalab-dots")).to_have_attribute("aria-hidden", "true")
    page.evaluate("document.getAnimations().forEach(dot => { dot.pause(); dot.currentTime = 1e6; })")
    end = page.locator(f"{DOTS}.written").first.bounding_box()
    cell = page.locator(".leader").bounding_box()
    assert end is not None and cell is not None
    assert end["x"] + end["width"] / 2 == pytest.approx(cell["x"] + cell["width"] / 2, abs=1)


def test_dots_go_on_while_the_rows_are_drawn_anew_and_stop_at_once_where_nothing_moves(page: Page) -> None:
    show(page, RATES)
    first = page.wait_for_selector(DOTS, state="attached")
    page.evaluate("html => { document.getElementById('rows').innerHTML = html }", ROWS)
    show(page, Rates({PLACE: 2_000.0}, RATES.read))
    expect(page.locator(DOTS)).to_have_count(6)
    assert first is not None and first.evaluate("dot => dot.isConnected")
    show(page, Rates(RATES.written))
    expect(page.locator(f"{DOTS}.read")).to_have_count(0)
    expect(page.locator(f"{DOTS}.written")).to_have_count(4)
    show(page, AT_REST)
    expect(page.locator(DOTS)).to_have_count(0)
    page.clock.run_for(10_000)
    expect(page.locator(DOTS)).to_have_count(0)
    show(page, RATES)
    expect(page.locator(DOTS)).to_have_count(6)


def test_no_dots_run_to_what_is_folded_away(page: Page) -> None:
    page.evaluate("document.querySelector('details').open = false")
    show(page, RATES)
    expect(page.locator(f"{DOTS}.written")).to_have_count(4)
    expect(page.locator(f"{DOTS}.read")).to_have_count(0)


def test_who_prefers_less_motion_gets_marks_that_rest(page: Page) -> None:
    assert page.evaluate(MARK) == "none"
    page.emulate_media(reduced_motion="reduce")
    show(page, RATES)
    page.clock.run_for(10_000)
    expect(page.locator(DOTS)).to_have_count(0)
    assert page.evaluate(MARK) == '""'
    page.emulate_media(reduced_motion="no-preference")
    page.clock.run_for(4_000)
    expect(page.locator(DOTS)).to_have_count(6)
