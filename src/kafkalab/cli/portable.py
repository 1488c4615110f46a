"""``kafkalab export`` and ``kafkalab import``: take work and progress to another machine, as one file."""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path, PurePosixPath

from rich.console import Console

from kafkalab import progress
from kafkalab.cli.arguments import Subparsers, add_workspace, subcommand
from kafkalab.course import Workspace, open_workspace
from kafkalab.errors import KafkaLabError
from kafkalab.files import write_atomically

__all__ = ["add_parser", "export_work", "import_work"]

EXPORT = """\
Write what you edited, ran or added in your workspace, and your progress, into one ZIP file. On another machine,
`kafkalab import` takes it up. The course's own files aren't in it: they are there already.
"""

IMPORT = """\
Take up work and progress that `kafkalab export` wrote. Nothing of yours is lost: where this workspace has other work
of yours in the same file, that stays beside it, with today's date in its name. Of progress, the better of both counts.
"""

_WORK, _PROGRESS = "workspace/", "progress.json"  # in the ZIP


def export_work(workspace: Workspace, target: Path) -> int:
    """Write a ZIP with the learner's work and progress, in one step, and return how many files are in it.

    Raises
    ------
    KafkaLabError
        If there is nothing to write, or the file can't be written.
    """
    work, record = workspace.work(), progress.load()
    work = {name: path for name, path in work.items() if path.absolute() != target.absolute()}
    if not work and record == progress.ProgressRecord():
        raise KafkaLabError(f"there's no work in {workspace.folder} and no progress yet")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in work.items():
            archive.write(path, _WORK + name)
        archive.writestr(_PROGRESS, progress.as_json(record))
    try:
        write_atomically(target, content.getvalue())
    except OSError as error:
        raise KafkaLabError(
            f"{target} can't be written: {error.strerror}. Name a file in a folder that you can write"
        ) from error
    return len(work)


def import_work(workspace: Workspace, source: Path) -> tuple[int, list[Path]]:
    """Take up a ZIP of `export_work`: all of it or, if it isn't one, nothing.

    Returns
    -------
    tuple of int and list of Path
        How many files were taken up, and those that keep what was here.

    Raises
    ------
    KafkaLabError
        If the file can't be read, or `export_work` didn't write it. Nothing was changed then.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            names = [info.filename for info in archive.infolist()]
            work = {name.removeprefix(_WORK): archive.read(name) for name in names if name != _PROGRESS}
            record = archive.read(_PROGRESS).decode()
        if strange := [name for name in names if name != _PROGRESS and not _belongs(name)]:
            raise ValueError(f"it has {strange[0]}, which is no file of a workspace")
        progress.merge(record)
    except OSError as error:
        raise KafkaLabError(f"{source} can't be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise KafkaLabError(f"{source} isn't what `kafkalab export` writes: {error}") from error
    kept = [workspace.take_up(name, data) for name, data in work.items()]
    return len(work), [path for path in kept if path]


def _belongs(name: str) -> bool:
    path = PurePosixPath(name)
    return name.startswith(_WORK) and not path.is_absolute() and not any(part.startswith(".") for part in path.parts)


def add_parser(commands: Subparsers) -> None:
    """Add ``export`` and ``import`` to the command line."""
    exporting = subcommand(commands, "export", _export, help="put your work and progress into one file", description=EXPORT)
    exporting.add_argument("file", metavar="FILE", type=Path, help="the ZIP file to write: work.zip")
    importing = subcommand(commands, "import", _import, help="take up work from another machine", description=IMPORT)
    importing.add_argument("file", metavar="FILE", type=Path, help="a ZIP file of `kafkalab export`")
    for parser in (exporting, importing):
        add_workspace(parser)


def _export(args: argparse.Namespace) -> int:
    files = export_work(open_workspace(args.workspace), args.file)
    _say(f"Your progress and {files} {'file' if files == 1 else 'files'} of yours are in {args.file}.")
    return 0


def _import(args: argparse.Namespace) -> int:
    workspace = open_workspace(args.workspace)
    files, kept = import_work(workspace, args.file)
    _say(f"{files} {'file is' if files == 1 else 'files are'} in {workspace.folder} now, and your progress is taken up.")
    for path in kept:
        _say(f"What was here is kept in {path.relative_to(workspace.folder)}.")
    return 0


def _say(sentence: str) -> None:
    Console(soft_wrap=True, highlight=False, markup=False).print(sentence)
