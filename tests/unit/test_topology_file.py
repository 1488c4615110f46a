"""A file with a topology that can't be used is refused in a sentence, with the line, before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalab.streams.topology_file import TopologyRefused, load, run


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def topology(builder:\n    pass\n", r"line 1 isn't Python: '\(' was never closed"),
        ("def topologie(builder):\n    pass\n", r"defines no function topology\(builder\); it defines topologie$"),
        ("topology = 3\n", r"defines no function topology\(builder\); it defines no function at all$"),
        ("\nimport nothing_of_that_name\n", r"line 2: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        (None, r"^refused.py can't be read: No such file"),
    ],
)
def test_it_is_refused(tmp_path: Path, text: str | None, reason: str) -> None:
    file = tmp_path / "refused.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(TopologyRefused, match=reason):
        load(file)


def test_a_built_in_that_java_cannot_place_is_explained() -> None:
    def call() -> None:
        raise TypeError(
            "Ambiguous overloads found for org.apache.kafka.streams.KStreamImpl.mapValues(type) between:\n\tpublic …"
        )

    with pytest.raises(TopologyRefused, match=r"TypeError: Java has more than one method mapValues.* Pass a lambda") as refused:
        run(Path("topology.py"), call)
    assert "public" not in str(refused.value)


def test_it_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kinds_of_events.py").write_text("NORMAL = 'Normal'\n")
    (tmp_path / "used.py").write_text("from kinds_of_events import NORMAL\n\n\ndef topology(builder):\n    return NORMAL\n")
    assert load(tmp_path / "used.py")(None) == "Normal"
