"""Run one submission in a worker of its own."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import IO, Any

from kafkalab.checks.lab import Lab
from kafkalab.grading.guard import Guard, OverLimit, end
from kafkalab.grading.isolation import Isolation
from kafkalab.grading.limits import Limits
from kafkalab.grading.marks import Mark
from kafkalab.grading.plan import Step, as_payload
from kafkalab.grading.reports import Reports
from kafkalab.grading.submissions import Submission
from kafkalab.lifeline import Run

__all__ = ["run_submission"]

_LOOK_SECONDS = 0.5
_LONGEST_LINE = 1 << 16
_ROOM_BESIDE = 20 << 20  # bytes of files beside a notebook


def run_submission(
    submission: Submission, lab: Lab, steps: Sequence[Step], isolation: Isolation, limits: Limits, interrupted: Event
) -> Mark:
    """Run a submission's steps, and return what came of them.

    When this returns or raises, no process of the submission is alive, and none of its files is left. (A mere process group
    can't promise that of code that hides its processes on purpose.)

    Parameters
    ----------
    submission, lab
        What to run, and the lab whose checks decide.
    steps
        As `plan` makes them.
    isolation, limits
        Where it runs, and how far it may go. A limit that it exceeds ends it, and what it reached until then counts.
    interrupted
        Set it to end the submission early.

    Returns
    -------
    Mark
        Its row. It has a reason if an error, a limit or the end of its kernel came between.
    """
    run = Run.create("grade")
    reports = Reports()
    guard = Guard(run, isolation, limits, interrupted, began=time.monotonic())
    try:
        if isolation.kind == "container":
            run.uses_docker()
        reason = _reason(guard, _payload(submission, steps), reports)
    finally:
        seconds = time.monotonic() - guard.began
        end(run)
    known = {check.id: len(check.requirements) for check in lab.checks}
    states = {check: states[: known[check]] for check, states in reports.best.items() if check in known}
    return Mark(submission.name, lab.stem, states, seconds, "; ".join(filter(None, (reports.error, reason))))


def _payload(submission: Submission, steps: Sequence[Step]) -> bytes:
    files, left = {}, _ROOM_BESIDE
    for name, path in submission.beside.items():
        if (left := left - path.stat().st_size) < 0:
            break
        files[name] = base64.b64encode(path.read_bytes()).decode()
    return json.dumps({"steps": as_payload(steps), "files": files}).encode() + b"\n"


def _reason(guard: Guard, payload: bytes, reports: Reports) -> str:
    """Run the worker to its end, or to the first limit. Return why it didn't end well; an empty text if it did."""
    run, isolation = guard.run, guard.isolation
    messages = run.directory / "messages"
    with (
        open(messages, "wb") as errors,
        subprocess.Popen(
            isolation.command(run, guard.limits),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=isolation.environment(run),
            cwd=run.directory,
            start_new_session=True,  # no signal of a terminal reaches it, nor the other way round
        ) as worker,
    ):
        assert worker.stdin is not None and worker.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError), worker.stdin:
                worker.stdin.write(payload)
            for event in _events(worker.stdout, lambda: worker.poll() is not None, lambda: guard.look(worker.pid)):
                reports.take(event)
        except OverLimit as over:
            return f"{over}, in {reports.doing}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
    if isolation.kind == "container" and not reports.ended and _memory_ended_it(run):
        return f"memory limit of {guard.limits.memory_bytes >> 20} MB, in {reports.doing}"
    if reports.reason or reports.ended:
        return reports.reason
    said = messages.read_text(errors="replace").strip().splitlines()
    return f"its process ended{': ' + said[-1][:200] if said else ''}"


def _events(channel: IO[bytes], is_over: Callable[[], bool], look: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Yield what the worker reports until it ends, and look at the limits meanwhile. What it reported until a limit counts."""
    held = bytearray()
    looked = 0.0
    try:
        while True:
            if time.monotonic() - looked >= _LOOK_SECONDS:
                look()
                looked = time.monotonic()
            over = is_over()  # before the look at the channel: what it wrote last is still read
            more = _fill(held, channel, 0 if over else _LOOK_SECONDS)
            if more == 0 or (more is None and over):  # something that it started may hold the channel open
                return
            yield from _parsed(held)
    except OverLimit:
        _fill(held, channel, 0)
        yield from _parsed(held)
        raise


def _fill(held: bytearray, channel: IO[bytes], seconds: float) -> int | None:
    """Add what the channel has, and return how many bytes: 0 at its end, None if nothing comes within some seconds."""
    if not select.select([channel], [], [], seconds)[0]:
        return None
    part = os.read(channel.fileno(), _LONGEST_LINE)  # as much as a pipe holds
    held += part
    return len(part)


def _parsed(held: bytearray) -> list[dict[str, Any]]:
    """Take the whole lines, and return the reports among them. What isn't one is ignored."""
    *lines, rest = held.split(b"\n")
    held[:] = rest[:_LONGEST_LINE]
    reports = []
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(report := json.loads(line), dict):
                reports.append(report)
    return reports


def _memory_ended_it(run: Run) -> bool:
    """Return whether a container's memory limit ended one of its processes."""
    from docker.client import from_env
    from docker.errors import DockerException

    try:
        with contextlib.closing(from_env()) as client:
            return bool(client.containers.get(run.id).attrs["State"]["OOMKilled"])
    except DockerException:
        return False
