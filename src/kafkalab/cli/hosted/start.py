"""Make a session ready: the texts, the workspace, the tools, and a cluster for its first cell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import platformdirs

from kafkalab.cli.hosted.content import fetch_content, source
from kafkalab.cli.hosted.notice import NOTICE_FILE, NOTICES
from kafkalab.cli.own_jupyter import prefer_course
from kafkalab.course import CONTENT_FOLDER, open_workspace
from kafkalab.distribution import tools_dir
from kafkalab.errors import KafkaLabError
from kafkalab.files import write_atomically

__all__ = ["become", "make_ready"]

_HERE = Path(__file__).parent


def make_ready(place: str) -> None:
    """Set this process's environment and folder as the session's server needs them.

    The learner works in a workspace, as with ``kafkalab lab``: JupyterLab serves the folder that it's started in. A session
    without one of these is better than none, so what fails is told on the standard error output, and the rest goes on.

    Parameters
    ----------
    place
        Where the session is: a key of `NOTICES`.
    """
    os.environ["KAFKALAB_BACKEND"] = "local"
    prefer_course()
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join([str(_HERE / "jupyter"), os.environ["JUPYTER_CONFIG_PATH"]])
    try:
        os.environ["PATH"] = os.pathsep.join([str(tools_dir()), os.environ["PATH"]])
    except KafkaLabError as error:
        _tell(f"the commands of Kafka aren't on the path: {error}")
    about_texts = _use_content()
    try:
        workspace = open_workspace()
        created = workspace.update().created
    except KafkaLabError as error:
        _tell(f"there is no workspace: {error}")
        return
    os.environ["KAFKALAB_WORKSPACE"] = str(workspace.folder)
    os.environ.setdefault("KAFKALAB_PROGRESS", str(workspace.folder / ".kafkalab/progress"))  # downloaded with the work
    write_atomically(workspace.folder / NOTICE_FILE, NOTICES[place] + about_texts)
    os.chdir(workspace.folder)
    if created:  # later the learner's own tabs open
        _open_first_chapter()


def _use_content() -> str:
    """Take the texts from where the session's link says; return a paragraph for the notice if that fails."""
    if (where := source()) is None:
        return ""
    folder = platformdirs.user_data_path("kafkalab") / "content"
    try:
        os.environ[CONTENT_FOLDER] = str(fetch_content(where, folder).root)
    except KafkaLabError as error:
        _tell(f"this session has the texts of its image: {error}")
        return f"\n**Texts.** This session has the texts of its image: {error}.\n"
    return ""


def _open_first_chapter() -> None:
    try:
        subprocess.run(
            ["jupyter", "lab", "workspaces", "import", _HERE / "workspace.json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        _tell(f"the first chapter won't open by itself: {error}")


def become(command: Sequence[str], *, standby: bool = True) -> NoReturn:
    """Become the server's command.

    Parameters
    ----------
    command
        The command and its arguments.
    standby
        Whether to start a cluster for the first cell in the background.
    """
    if standby:
        _start_standby()
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        sys.exit(f"{command[0]} can't be started: {error.strerror}")


def _start_standby() -> None:
    standby = subprocess.Popen(
        [sys.executable, "-P", "-m", "kafkalab.cli.hosted.standby", str(os.getpid())],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert standby.stdin is not None
    os.set_inheritable(standby.stdin.fileno(), True)  # the server holds this pipe until it ends


def _tell(words: str) -> None:
    print(words, file=sys.stderr)
