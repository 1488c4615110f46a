"""The picture of the rooms is the code's, and the page has a paragraph for each room."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import architecture

PAGE = architecture.PAGE.read_text(encoding="utf-8")


def test_the_picture_is_drawn_from_the_code() -> None:
    assert architecture.picture(architecture.imports()) in PAGE, "python tools/architecture.py draws it anew"


def test_each_room_has_a_paragraph() -> None:
    rooms = architecture.imports()
    assert set(re.findall(r"^\*\*(\w+)\*\*: ", PAGE, re.MULTILINE)) == set(rooms)


def test_no_arrow_leads_back() -> None:
    rooms = architecture.imports()
    assert not [room for room in rooms if room in architecture.reaches(rooms, room)]
    assert architecture.reaches(rooms, "cluster") == {"distribution", "foundation", "lifeline", "security"}
    assert "truck_pipeline" not in architecture.reaches(rooms, "cli"), "the engine knows no chapter"
    assert not rooms["truck_pipeline"]


def test_arrows_that_follow_from_others_are_left_out() -> None:
    rooms = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert architecture.needed(rooms) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert architecture.picture(rooms) == "```mermaid\nflowchart TD\n    a --> b\n    b --> c\n```\n"


def test_the_contract_names_an_arrow_that_leads_back(tmp_path: Path) -> None:
    """The contract's own rules, on a package in which the engine imports from the course."""
    for package, text in (("kafkalab", "import kafkacourse"), ("kafkacourse", ""), ("truck_pipeline", "import kafkalab")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(text)
    for room in ("cluster", "services", "spark", "streams", "widgets", "workers", "checks"):
        (tmp_path / "kafkalab" / room).mkdir()
        (tmp_path / "kafkalab" / room / "__init__.py").write_text("import kafkalab.spark" if room == "cluster" else "")
    (tmp_path / "pyproject.toml").write_text((architecture.PAGE.parents[1] / "pyproject.toml").read_text())
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "kafkalab -> kafkacourse" in done.stdout
    assert "truck_pipeline -> kafkalab" in done.stdout
    assert "kafkalab.cluster -> kafkalab.spark" in done.stdout
