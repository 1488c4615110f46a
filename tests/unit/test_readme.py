"""README's first screen: its links lead somewhere, its film plays, and its badges follow the repository's address."""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image, ImageSequence

from kafkalab.course import find_course
from write_badges import with_badges

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/use").glob("*.md"))]
SOURCES = r'(?:\]\(|src="|srcset=")([^)"#]+)'


def missing(page: Path, text: str) -> list[str]:
    """What a page shows or links to in the repository, and isn't there."""
    targets = [target for target in re.findall(SOURCES, text) if not target.startswith(("http", "../../actions/"))]
    return [target for target in targets if not (page.parent / target).exists()]


def test_links_and_pictures_are_there() -> None:
    assert not {page.name: gone for page in PAGES if (gone := missing(page, page.read_text()))}
    assert missing(ROOT / "README.md", "[a](b.md) [c](LICENSE)") == ["b.md"]


def test_it_leads_to_every_chapter_and_every_page_of_use() -> None:
    chapters = [f"notebooks/{stem}.ipynb" for stem in find_course().content.chapter_titles]
    assert re.findall(r"\]\((notebooks/[^)]+)\)", README) == chapters
    assert {page.name for page in PAGES[1:]} == set(re.findall(r"docs/use/([\w-]+\.md)", README))


def test_the_film_is_small_and_takes_about_twenty_seconds() -> None:
    film = ROOT / "docs/failover.gif"
    assert film.stat().st_size <= 2 << 20
    with Image.open(film) as image:
        assert 800 <= image.width <= 900  # readable where GitHub shows it
        durations = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
        assert image.info["loop"] == 0
    assert len(durations) > 30
    assert 15_000 <= sum(durations) <= 27_000  # milliseconds


def test_who_prefers_less_motion_sees_a_still() -> None:
    [picture] = re.findall(r"<picture>.*?</picture>", README, re.DOTALL)
    assert '<source media="(prefers-reduced-motion: reduce)" srcset="docs/failover.png">' in picture
    with Image.open(ROOT / "docs/failover.png") as still, Image.open(ROOT / "docs/failover.gif") as film:
        assert still.size == film.size
    [words] = re.findall(r'alt="([^"]+)"', picture)
    assert len(words.split()) > 10


def badges(text: str) -> list[str]:
    return re.findall(r"\[!\[([^]]+)\]", text)


def test_badges_that_need_an_address_wait_for_one() -> None:
    without = with_badges(README, "")
    assert badges(without) == ["tests", "licence: Apache 2.0", "Python 3.11 to 3.13"]
    with_address = with_badges(without, "https://github.com/somebody/kafka-course")
    assert badges(with_address) == [*badges(without), "open on Binder", "open in Codespaces"]
    assert "/v2/gh/somebody/kafka-course/HEAD?urlpath=lab%2Ftree%2Fnotebooks%2F00_start_here.ipynb)" in with_address
    assert with_badges(with_address, "") == without
    assert badges(README)[:3] == badges(without)


def test_binder_stands_behind_the_local_way_each_with_its_time() -> None:
    rows = [row.split(" | ") for row in re.findall(r"^\| (?:on|in) .*$", README, re.MULTILINE)]
    places = [row[0].removeprefix("| ") for row in rows]
    assert places == ["on your machine", "on Binder, to try it", "in GitHub Codespaces"]
    assert all(re.search("minute|machine", row[2]) for row in rows)
    assert "Binder is plan C" in (ROOT / "docs/teach/index.md").read_text()


def test_the_python_badge_says_which_versions_are_supported() -> None:
    assert 'requires-python = ">=3.11,<3.14"' in (ROOT / "pyproject.toml").read_text()
