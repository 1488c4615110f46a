"""Keep the learner's progress in a file: labs that passed, quiz results, predictions, the time in each chapter."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafkalab.paths import progress_dir

__all__ = [
    "LabProgress",
    "ProgressRecord",
    "QuizProgress",
    "TimeProgress",
    "VoteProgress",
    "as_json",
    "delete",
    "load",
    "merge",
    "record_cell",
    "record_lab",
    "record_outcome",
    "record_prediction",
    "record_quiz",
]

_VERSION = 1
_PAUSE = timedelta(minutes=10)  # whoever runs no cell for longer is elsewhere
_REMEDY = "Free some space there, or name a folder that you can write: export KAFKALAB_PROGRESS=/another/folder"

_printed: set[str] = set()  # sentences that this process has printed


@dataclass(frozen=True)
class LabProgress:
    """The progress of one lab.

    Attributes
    ----------
    passed
        Whether it ever passed. A later failed check doesn't undo it.
    checks
        How many times it was checked.
    passed_at
        When it first passed (ISO 8601, UTC), or None.
    """

    passed: bool
    checks: int
    passed_at: str | None


@dataclass(frozen=True)
class QuizProgress:
    """The best result of a quiz so far, and its number of questions."""

    right: int
    questions: int
    answered_at: str


@dataclass(frozen=True)
class VoteProgress:
    """A prediction in one round: alone, or after a discussion; and when it was made (ISO 8601, UTC)."""

    guess: str
    at: str


@dataclass(frozen=True)
class TimeProgress:
    """The time in a chapter, in seconds, and when a cell ran last in it or in one of its labs (ISO 8601, UTC)."""

    seconds: int
    until: str


@dataclass(frozen=True)
class ProgressRecord:
    """All progress.

    Attributes
    ----------
    labs, quizzes
        By name.
    predictions
        What the learner predicted, by the question.
    outcomes
        Whether a prediction came true, by the question. Only where that can be told.
    times
        The time in each chapter, by its number.
    votes
        The predictions of each round, by the question's id and the round: 1 alone, 2 after a discussion in a class.
    """

    labs: dict[str, LabProgress] = field(default_factory=dict)
    quizzes: dict[str, QuizProgress] = field(default_factory=dict)
    predictions: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, bool] = field(default_factory=dict)
    times: dict[str, TimeProgress] = field(default_factory=dict)
    votes: dict[str, dict[int, VoteProgress]] = field(default_factory=dict)


def load() -> ProgressRecord:
    """Read the progress. A file that isn't progress is renamed, never deleted, and a line says so."""
    try:
        return _read()
    except OSError as error:  # another user's file, or a folder of that name
        _print_once(f"Your progress can't be read: {_reason(error)}. {_REMEDY}")
        return ProgressRecord()


def _read() -> ProgressRecord:
    path = _path()
    try:
        return _parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ProgressRecord()
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # not JSON, not text, or JSON of another shape
        _set_aside(path, error)
        return ProgressRecord()


def record_lab(lab: str, passed: bool) -> None:
    """Record that a lab was checked, and whether it passed."""
    with _changing() as record:
        old = record.labs.get(lab, LabProgress(False, 0, None))
        passed_at = old.passed_at or (_now() if passed else None)
        record.labs[lab] = LabProgress(old.passed or passed, old.checks + 1, passed_at)


def record_quiz(quiz: str, right: int, questions: int) -> None:
    """Record a quiz's result: `right` answers of `questions`. The best result counts."""
    with _changing() as record:
        old = record.quizzes.get(quiz)
        if old is None or old.questions != questions or right > old.right:
            record.quizzes[quiz] = QuizProgress(right, questions, _now())


def record_prediction(question: str, guess: str, id: str = "", round: int = 1) -> None:
    """Record the learner's prediction. The last one counts. For a question with an id, the last one of each round is kept."""
    with _changing() as record:
        if record.predictions.get(question) != guess:
            record.outcomes.pop(question, None)
        record.predictions[question] = guess
        if id:
            record.votes.setdefault(id, {})[round] = VoteProgress(guess, _now())


def record_outcome(question: str, came_true: bool) -> None:
    """Record whether the learner's prediction came true. Running the cell again with the same outcome writes nothing."""
    if load().outcomes.get(question) != came_true:
        with _changing() as record:
            record.outcomes[question] = came_true


def record_cell(chapter: str) -> None:
    """Record that a cell of a chapter, or of one of its labs, has run. The chapter is told by its number: ``02``.

    The time since the cell before counts for the chapter, unless it's longer than 10 minutes. The cell before may be in
    another notebook, so no minute counts twice.
    """
    with _changing() as record:
        now = _now()
        before = max((time.until for time in record.times.values()), default=now)
        since = datetime.fromisoformat(now) - datetime.fromisoformat(before)
        counted = int(since.total_seconds()) if timedelta() <= since <= _PAUSE else 0
        old = record.times.get(chapter)
        record.times[chapter] = TimeProgress((old.seconds if old else 0) + counted, now)


def merge(content: str) -> None:
    """Add progress from another machine, as `as_json` wrote it. The better of both counts, and the prediction made here.

    Raises
    ------
    ValueError
        If it's no progress that this version of the course can read.
    """
    try:
        other = _parse(content)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"it isn't progress ({error!r})") from error
    with _changing() as record:
        for name, lab in other.labs.items():
            mine = record.labs.get(name, lab)
            passed_at = min(filter(None, (mine.passed_at, lab.passed_at)), default=None)
            record.labs[name] = LabProgress(mine.passed or lab.passed, max(mine.checks, lab.checks), passed_at)
        for name, quiz in other.quizzes.items():
            record.quizzes[name] = max(record.quizzes.get(name, quiz), quiz, key=lambda one: one.right)
        for question in other.predictions.keys() - record.predictions.keys():
            record.predictions[question] = other.predictions[question]
            if question in other.outcomes:
                record.outcomes[question] = other.outcomes[question]
        for id, rounds in other.votes.items():
            record.votes.setdefault(id, rounds)
        for chapter, time in other.times.items():
            record.times[chapter] = max(record.times.get(chapter, time), time, key=lambda one: one.seconds)


def as_json(record: ProgressRecord) -> str:
    """Return the progress as the file keeps it. Put in that file's place, it's this progress again."""
    return json.dumps({"version": _VERSION, **asdict(record)}, indent=2, sort_keys=True)


def delete() -> None:
    """Delete the progress. Raise `OSError` if that isn't possible."""
    with _locked():
        _path().unlink(missing_ok=True)


def _path() -> Path:
    return progress_dir() / "progress.json"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _parse(content: str) -> ProgressRecord:
    data = json.loads(content)
    if data["version"] != _VERSION:
        raise ValueError(f"progress of version {data['version']}")
    return ProgressRecord(
        {name: LabProgress(**lab) for name, lab in data["labs"].items()},
        {name: QuizProgress(**quiz) for name, quiz in data["quizzes"].items()},
        # Older files have no predictions, no outcomes, no times, or no votes.
        {str(question): str(guess) for question, guess in data.get("predictions", {}).items()},
        {str(question): bool(came_true) for question, came_true in data.get("outcomes", {}).items()},
        {chapter: TimeProgress(**time) for chapter, time in data.get("times", {}).items()},
        {
            id: {int(round): VoteProgress(**vote) for round, vote in rounds.items()}
            for id, rounds in data.get("votes", {}).items()
        },
    )


def _set_aside(path: Path, reason: Exception) -> None:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    kept = path.with_name(f"progress-unreadable-{stamp}.json")
    try:
        path.replace(kept)
    except OSError:
        kept = path  # in a folder that can't be written
    _print_once(f"Your progress file isn't one that this version of the course can read ({reason}). It's kept as {kept}.")


def _reason(error: OSError) -> str:
    return f"{error.strerror or error}, {error.filename or progress_dir()}"


def _print_once(sentence: str) -> None:
    if sentence not in _printed:
        _printed.add(sentence)
        print(sentence)


@contextmanager
def _locked() -> Iterator[None]:
    """Keep other processes from changing the progress: two notebooks may finish a lab at once."""
    folder = progress_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _changing() -> Iterator[ProgressRecord]:
    """Yield the progress, to change it. If it can't be stored, a line says why: what was to be recorded isn't undone."""
    record = None
    try:
        with _locked():
            record = _read()
            yield record
            _write(_path(), record)
    except OSError as error:
        _print_once(f"Your progress can't be kept: {_reason(error)}. {_REMEDY}")
        if record is None:
            yield ProgressRecord()


def _write(path: Path, record: ProgressRecord) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        try:
            file.write(as_json(record))
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except OSError:  # a full disk: the file from before stays
            os.unlink(file.name)
            raise
