"""The class board in a browser: the instructor conducts a poll, and the wall shows nothing of anybody."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from accessibility_support import assert_own_page_usable
from kafkalab.classroom.board_server import BoardServer
from kafkalab.classroom.events import Event
from kafkalab.classroom.facts import Facts
from kafkalab.classroom.lesson import Lesson
from kafkalab.classroom.released import Released
from kafkalab.classroom.views import instructor_view, wall_view
from kafkalab.course.questions import Question
from kafkalab.errors import PortInUse

pytestmark = pytest.mark.browser

SEATS = [
    f"{first}-{second}"
    for first in ("amber", "brisk", "calm", "dapper")
    for second in ("fox", "heron", "lynx", "otter", "wren")
]
WRITES = Question(
    "02-accepted",
    "02_cluster_failover",
    "Which of the two writes does `careful` acknowledge?",
    ("both of them", "only the one with `acks=all`", "only the one with `acks=1`", "neither of them"),
    right=2,
)
GAP = Question("02-gap", "02_failsafe", "How long has partition 3 *no* leader?", unit="s")
WORDS = {
    1: "`my-failsafe-topic` has 13 partitions with 3 replicas each",
    2: "`min.insync.replicas` is 2",
    3: "Broker 0 leads again",
}


class Class:
    """Twenty seats without Kafka."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.published: list[Released] = []
        self.lesson = Lesson([WRITES, GAP], self.facts, lambda: SEATS, self.published.append)
        self.lesson.begin()

        def words(check: str, number: int) -> str:
            return WORDS[number]

        self.server = BoardServer(
            lambda: {
                **instructor_view(self.facts, self.lesson, SEATS, words, time.time()),
                "problem": "",
                "wall": self.server.wall_url,
            },
            lambda: wall_view(self.facts, self.lesson, SEATS, words),
            {
                "ask": lambda given: self.lesson.ask(given["question"]),
                "move": lambda given: self.lesson.move(given["phase"]),
                "close": lambda _: self.lesson.close(),
                "release": lambda given: self.lesson.release(given["questions"]),
                "lower": lambda given: self.facts.lower(given["seat"]),
                "end": lambda _: self.lesson.end(),
            },
        )
        self.facts.on_change(self.server.changed)
        self.lesson.on_change(self.server.changed)

    def work(self) -> None:
        """What twenty seats tell in a quarter of an hour."""
        now = time.time()
        events = []
        for place, seat in enumerate(SEATS):
            met = [1, 2, 3][: place % 4]
            unmet, waiting = [1, 2, 3][len(met) : len(met) + 1], [1, 2, 3][len(met) + 1 :]
            events.append(
                (
                    seat,
                    Event("checked", "02_failsafe", met=met, unmet=unmet, waiting=waiting, attempt=1 + place % 4),
                    now - 60 * place,
                )
            )
        events += [
            ("calm-otter", Event("help", "02_failsafe", raised=True), now - 400),
            ("brisk-fox", Event("help", "02_isolated", raised=True), now - 130),
            ("dapper-wren", Event("done", "02_failsafe", raised=True), now - 30),
        ]
        self.facts.upsert(events)

    def vote(self, round: int, options: list[int]) -> None:
        self.facts.upsert(
            [(seat, Event("voted", WRITES.id, round=round, option=option), time.time()) for seat, option in zip(SEATS, options)]
        )


@pytest.fixture
def room() -> Iterator[Class]:
    room = Class()
    room.server.start()
    yield room
    room.server.stop()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    pages = []

    def opened(url: str, width: int = 1024, height: int = 768) -> Page:
        pages.append(page := browser.new_page(viewport={"width": width, "height": height}))
        page.goto(url)
        return page

    yield opened
    for page in pages:
        page.close()


def answer(url: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def text_sizes(page: Page) -> set[float]:
    """The sizes of all letters in the page."""
    return set(
        page.evaluate("""() => {
            const sizes = [];
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walker.nextNode())
                if (walker.currentNode.data.trim()) sizes.push(parseFloat(getComputedStyle(walker.currentNode.parentElement).fontSize));
            return sizes;
        }""")
    )


def test_a_poll_on_both_pages(room: Class, open_page: Callable[..., Page], measured: Callable[[str], None]) -> None:
    room.work()
    board, wall = open_page(room.server.url), open_page(room.server.wall_url, 1280, 720)
    problems = []
    for page in (board, wall):
        page.on("pageerror", lambda error: problems.append(error))
        page.on("request", lambda request: problems.append(request.url) if "//127.0.0.1:" not in request.url else None)
    expect(board.locator("#joined")).to_have_text("20 seats joined")
    expect(board.locator("#help li").first).to_contain_text("calm-otter")
    expect(wall.locator("h2")).to_have_text("Lab 02_failsafe")
    board.get_by_role("button", name="Lower the call of calm-otter").click()
    expect(board.locator("#help li")).to_have_count(1)

    board.get_by_role("button", name="Ask: Which of the two writes").click()
    expect(wall.locator("h1")).to_contain_text("Which of the two writes does careful acknowledge?")
    expect(wall.locator(".options b")).to_have_text(["A", "B", "C", "D"])
    room.vote(1, [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    expect(wall.locator(".count")).to_have_text("14 of 20 have voted")
    expect(board.locator(".advice")).to_have_text("43% are right. Let them discuss.")
    board.get_by_role("button", name="Discuss").click()
    expect(wall.locator("#clock")).to_have_text(re.compile(r"^\d\d:\d\d$"))
    assert wall.locator(".bar").count() == 0
    board.get_by_role("button", name="Vote again").click()
    room.vote(2, [2] * 15 + [1] * 3)
    expect(wall.locator(".count")).to_have_text("18 of 20 have voted again")
    board.get_by_role("button", name="Run the cell").click()
    assert wall.locator(".bar").count() == 0
    board.get_by_role("button", name="Reveal", exact=True).click()
    expect(wall.locator(".bar span")).to_have_text(["3", "0", "5", "3", "6", "15", "0", "0"])
    expect(wall.locator(".right")).to_contain_text("(what happened)")
    assert wall.evaluate("document.documentElement.scrollHeight <= innerHeight"), "the last option's bars are below the screen"
    assert_usable_in_both_schemes(board, wall, measured)
    board.get_by_role("button", name="Take it off the wall").click()
    expect(wall.locator("h2")).to_have_text("Lab 02_failsafe")
    assert not problems


def test_a_small_class_sees_what_was_right_and_no_votes(room: Class, open_page: Callable[..., Page]) -> None:
    wall = open_page(room.server.wall_url, 1280, 720)
    room.lesson.ask(WRITES.id)
    room.vote(1, [0, 2, 2])
    expect(wall.locator(".count")).to_have_text("Fewer than five have voted")
    room.lesson.move("run")
    assert wall.locator(".right").count() == 0
    room.lesson.move("revealed")
    expect(wall.locator(".right")).to_contain_text("(what happened)")
    expect(wall.get_by_text("Fewer than five have voted, so no votes are shown.")).to_be_visible()
    assert wall.locator(".bar").count() == 0


def assert_usable_in_both_schemes(board: Page, wall: Page, measured: Callable[[str], None]) -> None:
    for page, name in ((board, "the class board"), (wall, "the wall")):
        assert_own_page_usable(page, name, measured)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than its window"
    assert min(text_sizes(wall)) >= 28


def test_numbers_are_strips_of_dots(room: Class, open_page: Callable[..., Page]) -> None:
    wall = open_page(room.server.wall_url, 1280, 720)
    room.lesson.ask(GAP.id)
    for place, seat in enumerate(SEATS):
        room.facts.upsert([(seat, Event("voted", GAP.id, round=1, number=place % 7 * 1.5), time.time())])
        room.facts.upsert([(seat, Event("measured", GAP.id, number=1.9 + place % 5 / 10), time.time())])
    room.lesson.move("run")
    expect(wall.locator(".count")).to_have_text("20 of 20 have run it")
    room.lesson.move("revealed")
    expect(wall.locator("circle.first")).to_have_count(20)
    expect(wall.locator("circle.second")).to_have_count(20)
    expect(wall.locator("svg")).to_have_attribute("aria-label", "guessed by 20: 0 to 9 s; measured by 20: 1.9 to 2.3 s")
    assert min(text_sizes(wall)) >= 28


def test_a_refused_order_and_a_lost_board_say_so(room: Class, open_page: Callable[..., Page]) -> None:
    board = open_page(room.server.url)
    ask = board.get_by_role("button", name="Ask: Which of the two writes")
    expect(ask).to_be_visible()
    room.lesson._publish = lambda _: (_ for _ in ()).throw(PortInUse("the class's cluster doesn't take it"))
    ask.click()
    expect(board.locator("#problem")).to_have_text("the class's cluster doesn't take it")
    room.server.stop()
    expect(board.locator("#problem")).to_contain_text("The board doesn't answer")


def test_without_the_token_there_is_only_the_wall(room: Class) -> None:
    base = room.server.wall_url.removesuffix("/wall")
    token = room.server.url.split("/")[-2]
    assert answer(room.server.url)[0] == 200
    assert answer(room.server.wall_url)[0] == 200
    for path in (
        "/",
        "/board/",
        "/board//",
        "/board/wrong/",
        "/board/wrong/events",
        f"/board/{token[:-1]}/",
        "/pages/../board.py",
    ):
        assert answer(base + path)[0] == 404, path
    assert answer(f"{base}/board/wrong/do/end", b"{}")[0] == 404
    assert answer(room.server.url, Host="evil.example")[0] == 404
    assert answer(room.server.wall_url, Host="evil.example")[0] == 404
    assert not room.lesson.released.ended
    assert token not in answer(room.server.wall_url)[1]


def test_orders_that_make_no_sense_are_refused(room: Class) -> None:
    code, said = answer(f"{room.server.url}do/ask", b'{"question": "02-other"}')
    assert code == 409 and "today's chapters have no question '02-other'" in json.loads(said)["problem"]
    for body in (b"nonsense", b"[]", b"{}"):
        code, said = answer(f"{room.server.url}do/ask", body)
        assert code == 400 and "doesn't understand" in json.loads(said)["problem"]
    assert answer(f"{room.server.url}do/launch", b"{}")[0] == 404


def test_a_taken_port_is_named(room: Class) -> None:
    port = int(room.server.url.split(":")[2].split("/")[0])
    with pytest.raises(PortInUse, match=f"can't listen on port {port}"):
        BoardServer(dict, dict, {}, port).start()
