"""``kafkalab doctor --class``: a line from each learner before the day, and a table of them for who teaches."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

from kafkalab.cli.findings import Finding
from kafkalab.errors import KafkaLabError
from kafkalab.resources import available_memory

__all__ = ["Answer", "answers_in", "readiness", "show_answers", "start_a_cluster"]

_READY = "ready"
_LINE = re.compile(r"(?P<who>.*?)\bkafkalab (?P<version>[\w.+]+) \| (?P<verdict>ready|not ready: [^|]+?) \| (?P<facts>.+)")


def readiness(findings: Iterable[Finding], start: Callable[[], float]) -> tuple[str, bool]:
    """Return a line that says whether this machine is ready for a class, and whether it is.

    It has names of what is missing, and no path, no address, and no name of a person or a machine.

    Parameters
    ----------
    findings
        What `kafkalab.cli.findings` says of the machine.
    start
        Starts a cluster for a moment, and returns the seconds that it took. Called if nothing is missing.
    """
    lacking = [finding.subject for finding in findings if finding.state == "missing"]
    facts = [f"{platform.system()} {platform.machine()}", f"Python {platform.python_version()}"]
    facts.append(f"{available_memory() / 1e9:.1f} GB of memory free")
    if not lacking:
        try:
            facts.append(f"3 brokers in {start():.1f} s")
        except KafkaLabError as error:
            lacking.append(f"a cluster ({type(error).__name__})")
    verdict = f"not ready: {', '.join(lacking)}" if lacking else _READY
    return " | ".join([f"kafkalab {version('kafkalab')}", verdict, *facts]), not lacking


def start_a_cluster() -> float:
    """Start three brokers, end them, and return the seconds of the start."""
    from kafkalab.cluster import Cluster  # takes a second to load

    before = time.monotonic()
    with Cluster(name="class-check"):
        return time.monotonic() - before


@dataclass(frozen=True)
class Answer:
    """What a learner sent. `who` stands before the line, and whatever can't be read has no verdict."""

    who: str
    verdict: str = ""
    version: str = ""
    facts: str = ""

    @property
    def ready(self) -> bool:
        """Whether the machine is ready, for this version of the course."""
        return self.verdict == _READY and self.version == version("kafkalab")


def answers_in(text: str) -> list[Answer]:
    """Read lines that learners sent, each with or without something before it. Those who aren't ready come first."""
    answers = []
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _LINE.fullmatch(line)
        who = found["who"].strip(" :,;\t|") if found else line
        answers.append(Answer(who, found["verdict"], found["version"], found["facts"]) if found else Answer(who))
    return sorted(answers, key=lambda answer: answer.ready)


def show_answers(answers: list[Answer], console: Console) -> int:
    """Show a table, and return the exit status: 1 if somebody isn't ready, or nobody answered."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("", "Who", "Verdict", "Machine"):
        table.add_column(column, overflow="fold")
    for answer in answers:
        verdict = answer.verdict or "this is no line of `kafkalab doctor --class`"
        if answer.verdict and answer.version != version("kafkalab"):
            verdict = f"{verdict}, but with kafkalab {answer.version}; yours is {version('kafkalab')}"
        table.add_row("[green]✓" if answer.ready else "[red]✗", answer.who or "–", verdict, answer.facts)
    ready = sum(answer.ready for answer in answers)
    console.print(table, highlight=False)
    console.print(f"\n{ready} of {len(answers)} are ready.", highlight=False)
    return 0 if answers and ready == len(answers) else 1
