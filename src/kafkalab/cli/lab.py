"""``kafkalab lab``: open JupyterLab on its home page or a chapter, with Kafka's tools on its path and a cluster on standby."""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path

from rich.console import Console

from kafkalab.cli.arguments import Subcommand, Subparsers, add_workspace, subcommand
from kafkalab.cli.own_jupyter import broken_settings, own_settings, prefer_course, use_large_type, use_writable_folders
from kafkalab.conditions import home, require
from kafkalab.course import Update, Workspace, find_course, open_workspace
from kafkalab.course.workspace import HIDDEN
from kafkalab.errors import KafkaLabError
from kafkalab.shadows import hiding_files

__all__ = [
    "add_options",
    "add_parser",
    "cancel_tasks",
    "describe",
    "graphical_browser",
    "open_lab",
    "server_options",
    "standby_cluster",
]

DESCRIPTION = """\
Open the course in JupyterLab.

  kafkalab lab               the home page: all chapters and labs, and where you were
  kafkalab lab 2             chapter 02
  kafkalab lab cluster       the chapter or lab whose name begins like this
  kafkalab lab 02_failsafe   a lab

You work in a folder of your own, your workspace, with copies of the chapters and labs. When the course changes, this
command updates the files that you haven't edited. It leaves the others alone and lists them. If you ran a notebook
without editing it, the old one stays beside the new one, with its outputs and a date in its name.

If KAFKALAB_LABS names a folder with labs of your teacher, they come along, into labs/own.

The server listens on this machine only. Kafka's command-line tools are on the PATH of notebooks and terminals.
While you read the first page a cluster is started for you; if no notebook takes it, it is given back. Ctrl-C ends
JupyterLab, its kernels and their clusters.
"""

STANDBY_SECONDS = 15
_END_SECONDS = 5.0

# Up to this many files are listed by name.
LISTED = 5

# With less memory, a standby cluster may leave too little for the cluster that a chapter starts.
STANDBY_MEMORY = 3_000_000_000

# Text browsers can't show JupyterLab.
TEXT_BROWSERS = {"www-browser", "links", "elinks", "lynx", "w3m"}


def graphical_browser() -> bool:
    """Return whether this machine has a browser that can show JupyterLab."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    return Path(getattr(browser, "name", "")).name not in TEXT_BROWSERS


def server_options(notebook: Path | None, folder: Path, *, browser: bool, port: int | None) -> list[str]:
    """Return the options for JupyterLab.

    Parameters
    ----------
    notebook
        The notebook to open. Without it, the home page opens.
    folder
        The workspace. The server serves nothing outside it.
    browser
        Whether to open a browser.
    port
        The port to use. Without it, 8888 or the next free one.
    """
    page = f"/lab/tree/{notebook.relative_to(folder).as_posix()}" if notebook else "/lab"
    options = [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url={page}",
        f"--LabApp.workspaces_dir={folder / HIDDEN / 'layout'}",  # separate from the tabs of the learner's other projects
        "--ServerApp.answer_yes=True",  # Ctrl-C needs no confirmation
        "--Application.log_level=ERROR",
        "--KernelSpecManager.allowed_kernelspecs=[]",  # all: a list of the learner's own would leave the course's kernel out
        # The learner's own shell, but not a login shell, which would replace PATH and drop Kafka's tools.
        f"--ServerApp.terminado_settings={{'shell_command': [{os.environ.get('SHELL') or 'sh'!r}]}}",
    ]
    if not browser:
        options.append("--ServerApp.open_browser=False")
    if port is not None:
        options += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if os.geteuid() == 0:
        options.append("--ServerApp.allow_root=True")  # for containers; it listens on loopback only
    return options


@contextmanager
def standby_cluster() -> Iterator[None]:
    """Keep a local cluster ready for whichever notebook first asks for one. At the end it's removed if none did."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "kafkalab.cluster.standby"],
        stdin=subprocess.PIPE,  # closes when this process ends, however it ends
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us
    ) as standby:
        try:
            yield
        finally:
            assert standby.stdin is not None
            standby.stdin.close()
            try:
                standby.wait(STANDBY_SECONDS)
            except subprocess.TimeoutExpired:
                standby.kill()  # its watcher removes the cluster


def _wants_standby() -> bool:
    from kafkalab.cluster.backends import choose
    from kafkalab.resources import available_memory

    if available_memory() < STANDBY_MEMORY:
        return False

    try:
        return choose(None).name == "local"
    except KafkaLabError:
        return False  # the first cell shows the learner why


def add_parser(commands: Subparsers) -> None:
    """Add ``lab`` to the command line."""
    parser = subcommand(
        commands, "lab", _command, help="open the course, a chapter or a lab in JupyterLab", description=DESCRIPTION
    )
    parser.add_argument("notebook", nargs="?", metavar="CHAPTER", help="a chapter's number, or a chapter's or lab's name")
    add_options(parser)


def add_options(parser: Subcommand) -> None:
    """Add the options that `open_lab` looks at."""
    add_workspace(parser)
    parser.add_argument("--no-browser", action="store_true", help="open no browser, only print the address")
    parser.add_argument("--no-standby", action="store_true", help="do not start a cluster before one is asked for")
    parser.add_argument("--projector", action="store_true", help="begin with type that is large enough for a projector")
    parser.add_argument("--port", type=_port, help="the port to listen on (default: 8888 or the next free one)")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < (port := int(text)) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; a port is a number from 1 to 65535")
    return port


def describe(update: Update, workspace: Path) -> Iterator[str]:
    """Yield sentences about where the learner's workspace is, and what an update changed in it."""
    if update.created:
        yield f"Your workspace is {workspace}. Change anything in it: updates never overwrite your work."
        return
    yield f"Your workspace is {workspace}."
    for change, names in (
        ("New in the course", update.added),
        ("Updated, because the course changed", update.updated),
        ("Removed, because it's no longer part of the course", update.removed),
    ):
        if names:
            yield f"{change}: {', '.join(names) if len(names) <= LISTED else f'{len(names)} files'}."
    for name, kept in update.kept.items():
        yield f"Your run of {name} is kept in {kept.name}."
    for name, why in update.left.items():
        yield f"Left alone, though the course changed: {name} ({why})."
    if update.left:
        yield "`kafkalab reset NAME` gives you the course's version and keeps yours beside it."


def _put_kafkalab_on_path() -> None:
    """Put `kafkalab` on the PATH of JupyterLab's terminals. It comes last, so that it hides no other program."""
    folder = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "").split(os.pathsep)
    if folder not in path:
        os.environ["PATH"] = os.pathsep.join([*path, folder])


def _fetch_at_first() -> None:
    """Download what the course needs if it isn't there, because the learner would otherwise wait for it in silence."""
    from kafkalab.cli.fetch import fetch, steps

    todo = steps()
    if not todo[0].is_done():  # Kafka itself
        fetch(Console(), todo)


def _command(args: argparse.Namespace) -> int:
    require(home)
    workspace = open_workspace(args.workspace)
    update = workspace.update()
    for line in [*describe(update, workspace.folder), *find_course().problems()]:
        Console(soft_wrap=True, highlight=False, markup=False).print(line)
    return open_lab(args, workspace, workspace.open(args.notebook) if args.notebook else None)


def open_lab(args: argparse.Namespace, workspace: Workspace, notebook: Path | None) -> int:
    """Open JupyterLab on a notebook of the workspace, or on its home page. Returns when it ends.

    Parameters
    ----------
    args
        The options of `add_options`.
    workspace
        What JupyterLab serves.
    notebook
        The notebook's file, or None.
    """
    os.environ["KAFKALAB_WORKSPACE"] = str(workspace.folder)  # notebooks and terminals find it, wherever they run
    from kafkalab.cluster.ports import reserve_port
    from kafkalab.distribution import put_tools_on_path

    console = Console(soft_wrap=True, highlight=False, markup=False)
    if args.port:
        reserve_port(args.port).close()  # raises a clear error if the port is taken; the server would only log it
    _fetch_at_first()
    put_tools_on_path()
    _put_kafkalab_on_path()
    replacement = workspace.folder / HIDDEN / "jupyter"
    if refused := use_writable_folders(replacement):
        console.print(f"Jupyter can't write {', '.join(map(str, refused))}: it uses {replacement} instead.")
    prefer_course()
    if args.projector:
        use_large_type()
    for line in [*broken_settings(), *hiding_files(notebook.parent if notebook else workspace.folder / "notebooks")]:
        console.print(line)
    browser = not args.no_browser and graphical_browser()
    standby = not args.no_standby and _wants_standby()
    options = server_options(notebook, workspace.folder, browser=browser, port=args.port)
    with chdir(workspace.folder):  # JupyterLab's extensions expect to start in the served folder
        _serve(options, browser=browser, standby=standby)
    return 0


def _why_no_server(error: BaseException) -> str:
    """Return what to do about a JupyterLab that doesn't start. It has logged its reason itself, if it exits."""
    reason = "for the reason above" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    if not (files := own_settings()):
        return f"JupyterLab doesn't start: {reason}. `kafkalab doctor` looks at this machine"
    which = ("" if len(files) == 1 else "one of ") + ", ".join(map(str, files))
    return f"JupyterLab doesn't start: {reason}. Your own Jupyter settings may be why: fix {which}, or rename it, and try again"


def cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what a stopped server was still at.

    A kernel that is just starting would otherwise keep a worker thread, and so this process, for ever.
    """
    if tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks, timeout=_END_SECONDS))


def _serve(options: list[str], *, browser: bool, standby: bool) -> None:
    from jupyterlab.labapp import LabApp  # takes a second to load

    try:
        server = LabApp.initialize_server(options)
    except (Exception, SystemExit) as error:
        raise KafkaLabError(_why_no_server(error)) from error
    server.log.addFilter(lambda record: "To access the server" not in record.getMessage())  # printed plainly below
    with ExitStack() as beside:

        def announce() -> None:
            opens = "JupyterLab is ready and opens in your browser. Its address:"
            console = Console(soft_wrap=True, highlight=False, markup=False)
            console.print(opens if browser else "JupyterLab is ready. Open this address in a browser:")
            address, hidden, _ = server.public_url.partition("?token=...")  # the learner's own token isn't shown
            console.print(f"\n    {address}\n")
            if hidden:
                console.print("It asks for the token of your own Jupyter settings.")
            console.print("Ctrl-C ends it, with its notebooks and their clusters.")
            # Only now, so that the server doesn't share the processors with three starting brokers.
            if standby:
                beside.enter_context(standby_cluster())

        server.io_loop.add_callback(announce)  # runs after the callback that binds the port
        try:
            server.start()
        finally:
            cancel_tasks(server.io_loop.asyncio_loop)
