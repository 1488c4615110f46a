"""The film shows each picture as long as it stood, and waits for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageSequence

import make_film
from make_film import LAST, LENGTH, LONGEST_STILL, write_film


def picture(colour: str) -> Image.Image:
    return Image.new("RGB", (40, 30), colour)


def test_a_picture_stands_until_the_next_one_but_never_long(tmp_path: Path) -> None:
    shots = [(1.0, "white"), (1.2, "white"), (1.3, "navy"), (1.5, "white"), (60.0, "red")]
    write_film([(at, picture(colour)) for at, colour in shots], tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        shown = [(frame.info["duration"], frame.convert("RGB").getpixel((5, 5))) for frame in ImageSequence.Iterator(film)]
    white, navy, red = (255, 255, 255), (0, 0, 128), (255, 0, 0)
    assert shown == [(300, white), (200, navy), (LONGEST_STILL, white), (LAST, red)]


def test_what_takes_too_long_plays_faster(tmp_path: Path) -> None:
    write_film([(number, picture(("white", "red")[number % 2])) for number in range(60)], tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        durations = [frame.info["duration"] for frame in ImageSequence.Iterator(film)]
    assert len(durations) == 60
    assert sum(durations) == pytest.approx(LENGTH + LAST, rel=0.05)  # a GIF counts in hundredths of a second


def test_a_film_that_nobody_would_wait_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_film, "LARGEST", 100)
    with pytest.raises(ValueError, match=r"film.gif has [\d,]+ bytes, more than 100. Show fewer pictures"):
        write_film([(0.0, picture("white")), (1.0, picture("red"))], tmp_path / "film.gif")
