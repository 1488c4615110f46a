"""``kafkalab bundle`` and ``kafkalab release``: give a class a part of the course, and its solutions later."""

from __future__ import annotations

import argparse
import io
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, add_workspace, subcommand
from kafkalab.course import SOLUTIONS, Workspace, find_course, open_workspace
from kafkalab.course.bundled import LABEL, Bundle
from kafkalab.course.packing import Choice, choose, course_bundle, solutions_bundle
from kafkalab.errors import KafkaLabError
from kafkalab.files import write_atomically

__all__ = ["add_parser", "release", "write_bundle"]

BUNDLE = """\
Write a ZIP file with a part of the course. It works on its own: unzipped, two commands set it up and open it, on a
machine with Python and a network. Its README says which.

  kafkalab bundle                                the whole course
  kafkalab bundle --labs 03 --without-solutions  chapter 03 and its labs
  kafkalab bundle --labs 02_failsafe 03          a lab with its chapter, and chapter 03
  kafkalab bundle --labs 03 --solutions-only     what a class takes up later, with `kafkalab release`

Only files that git tracks get in, and notebooks without outputs. Labs of your own, from the folder that KAFKALAB_LABS
names, come along with the chapter that has their number.
"""

RELEASE = """\
Take up solutions that your teacher gives you as a file. `kafkalab solution` and the lab card have them from then on.
Nothing that you wrote changes, and no solution is shown before you ask for it.
"""


def write_bundle(files: Mapping[str, bytes], target: Path, folder: str = "") -> None:
    """Write files into a ZIP in one step, below a folder if that's named. Scripts can be run where it's unzipped.

    Raises
    ------
    KafkaLabError
        If the ZIP can't be written.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(str(PurePosixPath(folder, name)))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if data.startswith(b"#!") else 0o100644) << 16
            archive.writestr(entry, data)
    try:
        write_atomically(target, content.getvalue())
    except OSError as error:
        raise KafkaLabError(
            f"{target} can't be written: {error.strerror}. Name a file in a folder that you can write"
        ) from error


def release(workspace: Workspace, source: Path) -> tuple[Bundle, list[str]]:
    """Take up a bundle of solutions: all of it or, if it isn't one, nothing.

    Returns
    -------
    tuple of Bundle and list of str
        Its label, and the labs whose solutions are there now.

    Raises
    ------
    KafkaLabError
        If the file can't be read, or isn't a bundle of solutions. Nothing was changed then.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            files = {info.filename: archive.read(info) for info in archive.infolist()}
        label = _label(files)
    except OSError as error:
        raise KafkaLabError(f"{source} can't be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, RuntimeError, ValueError) as error:
        raise KafkaLabError(f"{source} isn't a file with solutions: {error}") from error
    workspace.release(files)
    return label, [PurePosixPath(name).stem for name in sorted(files) if name.endswith(".ipynb")]


def _label(files: dict[str, bytes]) -> Bundle:
    """Take the label out of the files, and look at what else there is."""
    if LABEL not in files:
        if any(PurePosixPath(name).name == LABEL for name in files):
            raise ValueError("it's a whole course; unzip it, and follow its README")
        raise ValueError(f"it has no {LABEL}; `kafkalab bundle --solutions-only` writes such files")
    label = Bundle.read(files.pop(LABEL))
    if strange := [name for name in files if not _is_solution(name)]:
        raise ValueError(f"it has {strange[0]}, which is no solution")
    return label


def _is_solution(name: str) -> bool:
    path = PurePosixPath(name)
    inside = not path.is_absolute() and not any(part.startswith(".") for part in path.parts) and "\\" not in name
    return inside and len(path.parts) > 2 and path.parts[0] == SOLUTIONS and not name.endswith("/")


def add_parser(commands: Subparsers) -> None:
    """Add ``bundle`` and ``release`` to the command line."""
    bundling = subcommand(commands, "bundle", _bundle, help="write a ZIP of the course for a class", description=BUNDLE)
    bundling.add_argument(
        "--labs", nargs="+", default=[], metavar="NN", help="chapters by number, or labs by name (default: the whole course)"
    )
    solutions = bundling.add_mutually_exclusive_group()
    solutions.add_argument("--without-solutions", action="store_true", help="leave the solutions out")
    solutions.add_argument("--solutions-only", action="store_true", help="only the solutions, for `kafkalab release`")
    bundling.add_argument(
        "--output", type=Path, metavar="FILE", help="the ZIP file to write (default: its name says what's in it)"
    )
    releasing = subcommand(commands, "release", _release, help="take up solutions from your teacher", description=RELEASE)
    releasing.add_argument("file", metavar="FILE", type=Path, help="a ZIP file of `kafkalab bundle --solutions-only`")
    add_workspace(releasing)


def _bundle(args: argparse.Namespace) -> int:
    course = find_course()
    choice = choose(args.labs, course.content)
    name = _name(args, choice)
    if args.solutions_only:
        files, folder = solutions_bundle(course, choice), ""
    else:
        files, folder = course_bundle(course, choice, solutions=not args.without_solutions), name
    target = args.output or Path(f"{name}.zip")
    write_bundle(files, target, folder)
    inside = f"{len(choice.labs)} {'lab' if len(choice.labs) == 1 else 'labs'} of {choice.words}"
    parts = "The solutions of" if args.solutions_only else "Without solutions:" if args.without_solutions else "With solutions:"
    size = f"{len(files)} files, {target.stat().st_size / 1e6:.1f} MB"
    _say(f"{parts} {inside}, kafkalab {version('kafkalab')}. {target} has {size}.")
    return 0


def _name(args: argparse.Namespace, choice: Choice) -> str:
    part = "-".join(chapter[:2] for chapter in choice.chapters) if args.labs else "course"
    kind = "-solutions" if args.solutions_only else "-without-solutions" if args.without_solutions else ""
    return f"kafkalab-{version('kafkalab')}-{part}{kind}"


def _release(args: argparse.Namespace) -> int:
    label, labs = release(open_workspace(args.workspace), args.file)
    _say(f"{len(labs)} {'solution is' if len(labs) == 1 else 'solutions are'} here now: {', '.join(labs)}.")
    _say("`kafkalab solution NAME` shows one.")
    if label.kafkalab != (installed := version("kafkalab")):
        _say(
            f"They were made with kafkalab {label.kafkalab}, and {installed} is installed: a lab may differ from its solution."
        )
    return 0


def _say(sentence: str) -> None:
    Console(soft_wrap=True, highlight=False, markup=False).print(sentence)
