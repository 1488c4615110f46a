"""Fetch the course's texts on their own, so that a change of one needs no new image.

The image (or the installed package) holds the environment and the engine. The texts may come from a git repository: they are
cloned, and the workspace is made from the clone. The learner's files are never merged with it line by line, because a merged
notebook may be no notebook.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from kafkalab.course import Content
from kafkalab.errors import KafkaLabError

__all__ = ["ENVIRONMENT_BRANCH", "fetch_content", "source"]

ENVIRONMENT_BRANCH = "binder"
"""Links to this branch get the environment from it, and the texts from the repository's default branch."""

_SECONDS = 60  # to clone
_ENGINE = {".py", ".lock"}  # what notebooks run on


def source() -> str | None:
    """Return where the texts come from, ``ADDRESS`` or ``ADDRESS#BRANCH``; None if the image's own are meant.

    ``KAFKALAB_CONTENT`` says so. On Binder, whose links can set no variable, a link to the branch `ENVIRONMENT_BRANCH` does.
    """
    if given := os.environ.get("KAFKALAB_CONTENT"):
        return given
    if os.environ.get("BINDER_REQUEST", "").endswith(f"/{ENVIRONMENT_BRANCH}"):
        return os.environ.get("BINDER_REPO_URL")
    return None


def fetch_content(source: str, folder: Path) -> Content:
    """Clone the course's texts into a folder, in place of what was there, and return them. Their files are read-only.

    Raises
    ------
    KafkaLabError
        If they can't be had, aren't a course, or are written for another engine than this session has. The folder is then
        as it was.
    """
    address, _, branch = source.partition("#")
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _clone(address, branch, fresh)
        if not Content.is_in(fresh):
            raise KafkaLabError(f"there are no chapters and labs in {source}")
        if differing := next(_other_engine(fresh), None):
            raise KafkaLabError(
                f"the texts in {source} are for another version of kafkalab than this session has: {differing} differs. "
                "Whoever keeps the link: build the image again"
            )
        for path in fresh.rglob("*"):
            if path.is_file():
                path.chmod(0o444)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.replace(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return Content(folder)


def _clone(address: str, branch: str, folder: Path) -> None:
    only = [f"--branch={branch}"] if branch else []
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["git", "clone", "--quiet", "--depth=1", *only, "--", address, folder],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        reason = next(reversed(error.stderr.strip().splitlines()), f"git ended with {error.returncode}")
        raise KafkaLabError(f"the texts can't be fetched: {reason}") from error
    except subprocess.TimeoutExpired as error:
        raise KafkaLabError(f"the texts can't be fetched: git clone didn't end within {_SECONDS} s") from error
    except OSError as error:  # no git, or no place to write
        raise KafkaLabError(f"the texts can't be fetched: {error}") from error


def _other_engine(clone: Path) -> Iterator[str]:
    """Yield the modules in which the packages of a clone aren't those that are installed."""
    for package in sorted(init.parent for pattern in ("src", "*/src") for init in clone.glob(f"{pattern}/*/__init__.py")):
        spec = find_spec(package.name)
        if spec is None or spec.origin is None:
            yield package.name
            continue
        there, here = _engine(package), _engine(Path(spec.origin).parent)
        for name in sorted(there.keys() | here.keys()):
            if name not in there or name not in here or there[name].read_bytes() != here[name].read_bytes():
                yield f"{package.name}/{name}"


def _engine(package: Path) -> dict[str, Path]:
    files = {path.relative_to(package): path for path in package.rglob("*") if path.suffix in _ENGINE}
    return {name.as_posix(): path for name, path in files.items() if name.parts[0] != "content"}  # which a wheel brings
