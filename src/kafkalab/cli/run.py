"""``kafkalab run``: run notebooks without a browser, with a verdict for each."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.own_jupyter import prefer_course
from kafkalab.errors import KafkaLabError
from kafkalab.shadows import hiding_files

if TYPE_CHECKING:
    from kafkalab.cli.execution import Outcome

__all__ = ["add_parser"]

DESCRIPTION = """\
Run notebooks from top to bottom, each in a fresh kernel, and give a verdict on each: ✓ or ✗, its seconds, and the
cell and reason of the first error. A notebook that needs more memory than there is gets skipped. The exit status is 1
if one of them failed. Labs that pass here do not count as your progress.

The files stay as they are, unless you ask for the outputs:

  --save     stores them in the notebooks themselves, without what changes from run to run, and notes the seconds they
             took, for the lab's card; refuses a notebook whose outputs tell of this machine (paths, names, ports), and
             says which cell it is
  --out DIR  writes the executed notebooks into DIR, with their folders
"""


def add_parser(commands: Subparsers) -> None:
    """Add ``run`` to the command line."""
    parser = subcommand(
        commands,
        "run",
        _command,
        help="run notebooks headless, with a verdict for each",
        description=DESCRIPTION,
        interrupted="Interrupted. The kernels and their clusters were ended.",
    )
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK", help="a notebook's file")
    parser.add_argument("--backend", choices=("local", "docker"), help="what clusters run on (default: as in JupyterLab)")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--save", action="store_true", help="store the outputs in the notebooks")
    target.add_argument("--out", type=Path, metavar="DIR", help="write the executed notebooks into this folder")
    parser.add_argument("-j", "--jobs", type=_positive, default=1, metavar="N", help="how many at once (default: 1)")
    parser.add_argument(
        "--timeout", type=_positive, default=300, metavar="SECONDS", help="how long one cell may take (default: 300)"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return number


def _command(args: argparse.Namespace) -> int:
    for path in args.notebooks:
        if not path.is_file():
            raise KafkaLabError(f"there is no notebook {path}")
    if args.out is not None:
        _require_folder(args.out)
    if args.backend:
        os.environ["KAFKALAB_BACKEND"] = args.backend  # the kernels inherit it

    # nbformat loads jsonschema, which would compile dozens of grammars for IRIs if that package were installed. That
    # takes two seconds, and no notebook contains IRIs.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # as if it were not installed
    for path in args.notebooks:
        _require_notebook(path)
        if hiding := hiding_files(path.parent.absolute()):
            raise KafkaLabError(f"{path} can't run. {hiding[0]}")
    from kafkalab.cli.execution import run_notebooks  # loads nbclient, which takes half a second
    from kafkalab.distribution import put_tools_on_path

    put_tools_on_path()
    prefer_course()
    keep = _keeper(args.save, args.out)
    console = Console()
    failed = skipped = 0

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        tasks = {path: bars.add_task(path.name, start=False, total=None) for path in args.notebooks}

        def watch(path: Path, executed: int, total: int) -> None:
            bars.start_task(tasks[path])
            bars.update(tasks[path], completed=executed, total=total)

        def done(outcome: Outcome) -> None:
            nonlocal failed, skipped
            bars.update(tasks[outcome.path], visible=False)
            if outcome.skipped:
                skipped += 1
                console.print(f"– {escape(str(outcome.path))}  skipped: {outcome.skipped}", soft_wrap=True, highlight=False)
                return
            problem = outcome.failure or keep(outcome)
            failed += bool(problem)
            mark = "[red]✗[/]" if problem else "[green]✓[/]"
            text = f"{mark} {escape(str(outcome.path))}  {outcome.seconds:.1f} s"
            console.print(text + (f"  {escape(problem)}" if problem else ""), soft_wrap=True, highlight=False)

        run_notebooks(args.notebooks, at_once=args.jobs, cell_timeout=args.timeout, watch=watch, done=done)
    if len(args.notebooks) > 1:
        verdicts = f"{len(args.notebooks) - failed - skipped} passed, {failed} failed"
        console.print(f"{verdicts}, {skipped} skipped" if skipped else verdicts, highlight=False)
    return 1 if failed else 0


def _require_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KafkaLabError(f"the folder {folder} can't be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise KafkaLabError(f"the folder {folder} can't be written")


def _require_notebook(path: Path) -> None:
    import nbformat
    from nbformat.reader import NotJSONError

    try:
        nbformat.validate(nbformat.read(path, as_version=4))
    except NotJSONError:
        raise KafkaLabError(f"{path} is no notebook: it isn't JSON") from None
    except OSError as error:
        raise KafkaLabError(f"{path} can't be read: {error.strerror}") from error
    except Exception as error:  # nbformat fails in many ways on JSON that isn't a notebook
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise KafkaLabError(f"{path} is no notebook: it's JSON, but not a notebook's ({reason})") from error


def _keeper(save: bool, out: Path | None) -> Callable[[Outcome], str]:
    """Return what to do with a notebook that passed: a function that returns why it refused to store it, or nothing."""
    from kafkalab.cli.storing import leaks, machine_marks, note_seconds, store, strip

    def save_in_place(outcome: Outcome) -> str:
        strip(outcome.notebook)
        if problems := leaks(outcome.notebook, machine_marks(Path.cwd())):
            return "not stored: " + "; ".join(problems)
        note_seconds(outcome.notebook, outcome.seconds)
        store(outcome.notebook, outcome.path)
        return ""

    def write_out(outcome: Outcome) -> str:
        assert out is not None
        # A lab and its solution have the same name, so keep the folders.
        target = out / outcome.path.resolve().relative_to(os.path.commonpath([Path.cwd(), outcome.path.resolve()]))
        target.parent.mkdir(parents=True, exist_ok=True)
        store(outcome.notebook, target)
        return ""

    return save_in_place if save else write_out if out else lambda outcome: ""
