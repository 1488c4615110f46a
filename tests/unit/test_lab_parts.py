"""Every lab has the same parts in the same order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

LABS = sorted((Path(__file__).parents[2] / "labs").glob("*/*.ipynb"))
FIRST = {
    "do": r"^\*\*What you'll do\.\*\* ",
    "learn": r"^\*\*What you'll learn\.\*\* ",
    "need": r"^\*\*What you'll need\.\*\* ",
    "yours": r"^Cells with `# YOUR CODE HERE` are yours",
    "links": r"^Lab \d+ of \d+ of \[chapter",
    "task": r"^\*\*Do\.\*\*",
}
LAST = {
    "check": r"\bcheck\(",
    "saw": r"^(?:## |\*\*)What you saw",
    "own": r"^(?:## |\*\*)On your own",
    "read": r"^(?:## |\*\*)Further",
}
SHORT = {"06_schema_registry", "07_security", "08_mirrormaker"}  # these end with their check, or soon after it


def parts(text: str) -> list[str]:
    """The parts that there are, in order."""
    first = {name: start.start() for name, part in FIRST.items() if (start := re.search(part, text, re.MULTILINE))}
    last = {name: found[-1].start() for name, part in LAST.items() if (found := list(re.finditer(part, text, re.MULTILINE)))}
    return sorted(first | last, key=(first | last).__getitem__)


def missing(text: str, *, short: bool) -> list[str]:
    wanted = [*FIRST, "check"] if short else [*FIRST, *LAST]
    found = parts(text)
    return [] if found[: len(wanted)] == wanted else [f"{found} instead of {wanted}"]


@pytest.mark.parametrize("chapter", sorted({path.parent for path in LABS}), ids=lambda path: path.name)
def test_labs_have_the_same_parts_in_the_same_order(chapter: Path) -> None:
    for path in sorted(chapter.glob("*.ipynb")):
        text = "\n\n".join("".join(cell["source"]) for cell in json.loads(path.read_bytes())["cells"])
        assert not missing(text, short=chapter.name in SHORT), path.stem


def test_a_lab_without_a_part_is_found() -> None:
    text = json.loads(LABS[0].read_bytes())["cells"]
    whole = "\n\n".join("".join(cell["source"]) for cell in text)
    assert not missing(whole, short=False)
    assert missing(whole.replace("**What you'll learn.**", ""), short=False)
    assert missing(whole.replace("## Further reading", ""), short=False)
    assert missing("## Further reading\n\n" + whole.replace("## Further reading", ""), short=False)
