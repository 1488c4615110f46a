"""Pack a part of the course for a class: files by name, as they stand in a bundle.

Only files that git tracks get in, notebooks without outputs, and links to notebooks that aren't in the bundle become words.
"""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from kafkalab.course.bundled import LABEL, Bundle, Kind
from kafkalab.course.content import SOLUTIONS, Content
from kafkalab.course.installed import OWN_FOLDER, Course
from kafkalab.course.names import find_notebook, labs_of
from kafkalab.course.own_labs import ABOUT, OWN
from kafkalab.course.versions import Version
from kafkalab.course.workspace import written_in
from kafkalab.errors import KafkaLabError

__all__ = ["Choice", "choose", "course_bundle", "solutions_bundle"]

# What `tools/setup.sh course` needs.
SETUP = ("src", "pipeline/pyproject.toml", "pipeline/README.md", "pipeline/src", "pyproject.toml", "setup.py", "LICENSE",
         "tools/setup.sh", "requirements/course.lock", "requirements/installer.lock")  # fmt: skip

_LINK = re.compile(r"(?<!!)\[([^]]*)\]\(([^)\s#:]+\.(?:ipynb|md))(?:#[^)]*)?\)")

_README = """\
# Kafka course: {what}

Made with kafkalab {version}. You need Python 3.11 to 3.13, bash, a network and 3 GB of disk. Two commands, in this folder, set
the course up and open it:

```
bash tools/setup.sh course
.venv/bin/kafkalab lab {first}
```

The first one takes a few minutes. You work in the folder `workspace`, with copies of the chapters and labs. {solutions}
"""

_WITH = "`.venv/bin/kafkalab solution NAME` shows the solution of a lab."
_WITHOUT = """\
There are no solutions in it. When your teacher gives you a file with some, `.venv/bin/kafkalab release FILE` takes them up."""


@dataclass(frozen=True)
class Choice:
    """What goes into a bundle: chapters (``03_producer``) and labs (``03_retries``), in the course's order."""

    chapters: tuple[str, ...]
    labs: tuple[str, ...]

    @property
    def words(self) -> str:
        """The chapters, for people: ``chapters 02 and 03``."""
        numbers = [chapter[:2] for chapter in self.chapters]
        listed = ", ".join(numbers[:-1]) + " and " + numbers[-1] if len(numbers) > 1 else numbers[0]
        return f"chapter{'s' * (len(numbers) > 1)} {listed}"


def choose(names: Collection[str], content: Content) -> Choice:
    """Return what names mean: a chapter with all its labs, or a lab with its chapter. Without names, the whole course.

    An instructor's own labs belong to the chapter with their number.

    Raises
    ------
    KafkaLabError
        If a name fits nothing, or several notebooks.
    """
    chapters: set[str] = set()
    labs: set[str] = set()
    for name in names or content.chapter_titles:
        notebook = find_notebook(name, content)
        stem = Path(notebook).stem
        if notebook.startswith("notebooks/"):
            chapters.add(stem)
            labs.update(Path(lab).stem for lab in labs_of(notebook, content))
            labs.update(own for own in content.own.stems if own[:2] == stem[:2])
        else:
            chapters.update(chapter for chapter in content.chapter_titles if chapter[:2] == stem[:2])
            labs.add(stem)
    return Choice(
        tuple(chapter for chapter in content.chapter_titles if chapter in chapters),
        tuple(stem for stem in content.lab_stems() if stem in labs),
    )


def course_bundle(course: Course, choice: Choice, *, solutions: bool) -> dict[str, bytes]:
    """Return the files of a bundle that is set up like a clone.

    Raises
    ------
    KafkaLabError
        If the course isn't a git clone, a file can't be read, or git doesn't track a notebook that is asked for.
    """
    root, tracked = _clone(course)
    content = course.content
    files = {name: root / name for name in tracked if any(name == part or name.startswith(f"{part}/") for part in SETUP)}
    packed = {name: _read(path) for name, path in files.items()}
    chosen = _chosen(content, choice, tracked) | (_chosen_solutions(content, choice, tracked) if solutions else {})
    packed |= {name: _without_dead_links(data, name, chosen) for name, data in _for_learners(chosen).items()}
    packed |= {name: _read(path) for name, path in _own(content, choice, solutions=solutions)}
    kind: Kind = "course" if solutions else "course without solutions"
    packed[LABEL] = _label(kind, choice)
    packed["README.md"] = _README.format(
        what=choice.words, version=version("kafkalab"), first=choice.chapters[0][:2], solutions=_WITH if solutions else _WITHOUT
    ).encode()
    return packed


def solutions_bundle(course: Course, choice: Choice) -> dict[str, bytes]:
    """Return the files of a bundle with solutions only. Raises like `course_bundle`, and if there are no solutions."""
    content = course.content
    chosen = _chosen_solutions(content, choice, _clone(course)[1])
    chosen |= {name: path for name, path in content.solutions().items() if _is_own(name) and path.stem in choice.labs}
    if not chosen:
        raise KafkaLabError(f"this course has no solutions of {choice.words}, so there is nothing to put into a bundle")
    return _for_learners(chosen) | {LABEL: _label("solutions", choice)}


def _label(kind: Kind, choice: Choice) -> bytes:
    return Bundle(version("kafkalab"), kind, choice.chapters).as_json().encode()


def _clone(course: Course) -> tuple[Path, set[str]]:
    """Return the clone, and what git tracks in it, so that nothing else of this machine gets into a bundle."""
    if course.clone is None:
        raise KafkaLabError(
            "a bundle is made in a clone of the course's repository, and this course is an installed package; "
            "clone the repository and call it there"
        )
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=course.clone, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else error.strerror
        raise KafkaLabError(
            f"a bundle holds what git tracks and nothing else, and git can't list that in {course.clone}: {reason}"
        ) from error
    return course.clone, {name for name in listed.decode().split("\0") if name and (course.clone / name).is_file()}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KafkaLabError(f"{path} can't be read: {error.strerror}") from error


def _is_own(name: str) -> bool:
    return PurePosixPath(name).parts[1] == OWN


def _chosen(content: Content, choice: Choice, tracked: Collection[str]) -> dict[str, Path]:
    """Return chapters, labs and what stands beside them, but for own labs."""

    def is_in(name: str) -> bool:
        path = PurePosixPath(name)
        if path.parts[0] == "notebooks":
            return path.suffix != ".ipynb" or path.stem in choice.chapters
        if path.parts[0] == "labs":
            return path.parts[1] in choice.chapters and (path.suffix != ".ipynb" or path.stem in choice.labs)
        return True  # to look things up

    return _tracked(content.files(), tracked, is_in)


def _chosen_solutions(content: Content, choice: Choice, tracked: Collection[str]) -> dict[str, Path]:
    def is_in(name: str) -> bool:
        path = PurePosixPath(name)
        if path.parts[1] not in choice.chapters:
            return False
        return (path.stem if path.suffix == ".ipynb" else written_in(content.root / name)) in (None, *choice.labs)

    return _tracked(content.solutions(), tracked, is_in)


def _tracked(files: Mapping[str, Path], tracked: Collection[str], is_in: Callable[[str], bool]) -> dict[str, Path]:
    found = {name: path for name, path in files.items() if is_in(name)}
    if unknown := [name for name in found if name.endswith(".ipynb") and name not in tracked]:
        raise KafkaLabError(f"git doesn't track {unknown[0]}, so it can't go into a bundle: `git add` it, or move it away")
    return {name: path for name, path in found.items() if name in tracked}


def _own(content: Content, choice: Choice, *, solutions: bool) -> Iterator[tuple[str, Path]]:
    """Yield an instructor's own labs as they stand in their folder: in a bundle it's found without a variable."""
    own = content.own
    if not set(own.stems) & set(choice.labs):
        return
    for name, path in own.files.items():
        folder, _, *rest = PurePosixPath(name).parts
        if (folder == "labs" or solutions) and (path.suffix != ".ipynb" or path.stem in choice.labs):
            yield posixpath.join(OWN_FOLDER, *([SOLUTIONS] if folder == SOLUTIONS else []), *rest), path
    for stem, path in own.checks.items():
        if stem in choice.labs:
            yield f"{OWN_FOLDER}/{path.name}", path
    if own.folder is not None and (about := own.folder / ABOUT).is_file():
        yield f"{OWN_FOLDER}/{ABOUT}", about


def _for_learners(files: Mapping[str, Path]) -> dict[str, bytes]:
    return {name: Version.for_learners(path).data for name, path in files.items()}


def _without_dead_links(data: bytes, name: str, present: Collection[str]) -> bytes:
    """Let links of a notebook to files that aren't in the bundle be words."""
    if not name.endswith(".ipynb"):
        return data

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
        return match[0] if target in present else match[1]

    notebook = json.loads(data)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = _LINK.sub(link, "".join(cell["source"]))
            cell["source"] = text.splitlines(keepends=True)
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
