"""The table of progress."""

from __future__ import annotations

from pathlib import Path

from kafkalab.progress import LabProgress, ProgressRecord, QuizProgress
from kafkalab.widgets import Progress
from kafkalab.widgets.progress_table import progress_html, progress_text
from kafkalab.widgets.quiz_data import quiz_names


def test_the_progress_table() -> None:
    record = ProgressRecord(
        {"02_failsafe": LabProgress(True, 2, "2026-01-02T03:04:05+00:00"), "02_<x>": LabProgress(False, 3, None)},
        {"01_single_node": QuizProgress(7, 7, "2026-01-02T03:04:05+00:00")},
    )
    labs = {"02_failsafe": "Kill <a> broker", "01_my_topic": "Send seven lines"}
    later = [name[:2] for name in quiz_names() if name[:2] > "02"]
    assert progress_text(record, labs).splitlines() == [
        "  00 quiz      not answered yet",
        "  01_my_topic  not checked yet",
        "x 01 quiz      7 of 7 right",
        "x 02_failsafe  passed on 2026-01-02",
        "  02_<x>       checked 3 ×, not passed yet",
        "  02 quiz      not answered yet",
        *(f"  {chapter} quiz      not answered yet" for chapter in later),
    ]
    html = progress_html(record, labs)
    assert f"2 of {6 + len(later)} done" in html and "02_&lt;x&gt;" in html and "Kill &lt;a&gt; broker" in html


def test_progress_shows_itself(progress_folder: Path) -> None:
    assert set(Progress({"02_failsafe": "Kill a broker"})._repr_mimebundle_()) == {"text/html", "text/plain"}
