"""``kafkalab lab``: JupyterLab on a chapter, with Kafka's tools on its path and a cluster on standby."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from kafkalab.cli.arguments import Subparsers, subcommand
from kafkalab.cli.course import chapter, course_dir
from kafkalab.errors import KafkaLabError

__all__ = ["add_parser", "graphical_browser", "server_options", "standby_cluster"]

DESCRIPTION = """\
Open the course in JupyterLab.

  kafkalab lab           the first chapter
  kafkalab lab 2         chapter 02
  kafkalab lab cluster   the chapter whose name begins so

The server listens on this machine only. Kafka's command-line tools are on the PATH of notebooks and terminals.
While you read the first page a cluster is started for you; if no notebook takes it, it is given back. Ctrl-C ends
JupyterLab, its kernels and their clusters.
"""

STANDBY_SECONDS = 15

# Where there is less, a cluster that a chapter did not ask for may leave too little for the one that it asks for.
STANDBY_MEMORY = 3_000_000_000

# Settings of JupyterLab for the course, which the learner's own win over; Binder uses them too.
SETTINGS = Path(__file__).with_name("jupyter")

# Browsers for a terminal show no JupyterLab.
TEXT_BROWSERS = {"www-browser", "links", "elinks", "lynx", "w3m"}


def graphical_browser() -> bool:
    """Whether there is a browser here that can show JupyterLab."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    return Path(getattr(browser, "name", "")).name not in TEXT_BROWSERS


def server_options(notebook: Path, folder: Path, *, browser: bool, port: int | None) -> list[str]:
    """Options for JupyterLab.

    Parameters
    ----------
    notebook
        The notebook to open.
    folder
        The course's folder; the server serves nothing outside of it.
    browser
        Whether to open a browser.
    port
        The port to use; without it 8888 or the next free one.
    """
    options = [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{notebook.relative_to(folder).as_posix()}",
        "--ServerApp.answer_yes=True",  # Ctrl-C is meant
        "--Application.log_level=ERROR",
        # The learner's own shell, but no login shell, which would set a PATH of its own, without Kafka's tools.
        f"--ServerApp.terminado_settings={{'shell_command': [{os.environ.get('SHELL') or 'sh'!r}]}}",
    ]
    if not browser:
        options.append("--ServerApp.open_browser=False")
    if port is not None:
        options += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if os.geteuid() == 0:
        options.append("--ServerApp.allow_root=True")  # containers; it listens on loopback only
    return options


@contextmanager
def standby_cluster() -> Iterator[None]:
    """Have a local cluster ready for whoever first asks for one; at the end it is given back if nobody did."""
    with subprocess.Popen(
        [sys.executable, "-m", "kafkalab.cluster.standby"],
        stdin=subprocess.PIPE,  # closed at the latest when this process ends, however it ends
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
                standby.kill()  # its watcher gives the cluster back


def _wants_standby() -> bool:
    from kafkalab.cluster.backends import choose
    from kafkalab.cluster.resources import available_memory

    if available_memory() < STANDBY_MEMORY:
        return False

    try:
        return choose(None).name == "local"
    except KafkaLabError:
        return False  # the first cell says why, to the learner


def add_parser(commands: Subparsers) -> None:
    """Add ``lab`` to the command line."""
    parser = subcommand(
        commands, "lab", _command, help="open the course, or one chapter, in JupyterLab", description=DESCRIPTION
    )
    parser.add_argument("chapter", nargs="?", metavar="CHAPTER", help="number or beginning of a chapter's name")
    parser.add_argument("--no-browser", action="store_true", help="open no browser, only print the address")
    parser.add_argument("--no-standby", action="store_true", help="do not start a cluster before one is asked for")
    parser.add_argument("--port", type=_port, help="the port to listen on (default: 8888 or the next free one)")


def _port(text: str) -> int:
    if not 0 < (port := int(text)) < 1 << 16:
        raise argparse.ArgumentTypeError("must be 1 to 65535")
    return port


def _command(args: argparse.Namespace) -> int:
    folder = course_dir()
    notebook = chapter(args.chapter, folder)
    from kafkalab.cluster.ports import reserve_port
    from kafkalab.distribution import put_tools_on_path

    if args.port:
        reserve_port(args.port).close()  # says it plainly if the port is taken; the server would only log it
    put_tools_on_path()
    settings = [str(SETTINGS), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(settings)
    browser = not args.no_browser and graphical_browser()
    standby = not args.no_standby and _wants_standby()
    _serve(server_options(notebook, folder, browser=browser, port=args.port), browser=browser, standby=standby)
    return 0


def _serve(options: list[str], *, browser: bool, standby: bool) -> None:
    from jupyterlab.labapp import LabApp  # takes a second to load

    server = LabApp.initialize_server(options)
    server.log.addFilter(lambda record: "To access the server" not in record.getMessage())  # it is said here, plainly
    with ExitStack() as beside:

        def announce() -> None:
            opens = "JupyterLab is ready and opens in your browser. Its address:"
            console = Console()
            console.print(opens if browser else "JupyterLab is ready. Open this address in a browser:")
            console.print(f"\n    {server.public_url}\n", soft_wrap=True, highlight=False, markup=False)
            console.print("Ctrl-C ends it, with its notebooks and their clusters.")
            # Only now: the server would otherwise have to share the processors with three starting brokers.
            if standby:
                beside.enter_context(standby_cluster())

        server.io_loop.add_callback(announce)  # after the one that binds the port
        server.start()
