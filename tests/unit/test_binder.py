"""A Binder session opens a workspace, with what a learner must know about the session and the first chapter."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from jupyter_server.services.config.manager import ConfigManager

from kafkalab import progress
from kafkalab.cli import hosted, main
from kafkalab.cli.hosted.content import fetch_content, source
from kafkalab.cli.hosted.notice import NOTICE_FILE, NOTICES
from kafkalab.cli.hosted.start import make_ready
from kafkalab.cli.own_jupyter import SETTINGS
from kafkalab.course import CONTENT_FOLDER, find_course
from kafkalab.course.workspace import HIDDEN
from kafkalab.errors import DownloadError, KafkaLabError
from kafkalab.waiting import wait_until
from support import PATIENCE

ROOT = Path(__file__).parents[2]
FIRST = next(name for name in find_course().content.files() if name.endswith(".ipynb"))
HOSTED = Path(hosted.__file__).parent
WORKSPACE = json.loads((HOSTED / "workspace.json").read_text())["data"]
LARGEST_CLONE = 200 << 20  # bytes
LAB = "labs/00_start_here/00_environment.ipynb"


def test_the_notice_opens_and_the_first_chapter_behind_it_and_labs_are_in_sight() -> None:
    notice, chapter = f"markdownviewer-widget:{NOTICE_FILE}", f"notebook:{FIRST}"
    layout = WORKSPACE["layout-restorer:data"]
    assert layout["main"]["current"] == notice
    assert layout["main"]["dock"]["widgets"] == [notice, chapter]
    assert WORKSPACE[notice]["data"]["path"] == NOTICE_FILE
    assert WORKSPACE[chapter]["data"]["path"] == FIRST
    assert (layout["left"]["visible"], layout["left"]["current"]) == (True, "filebrowser")
    assert WORKSPACE["file-browser-filebrowser:cwd"] == {"path": ""}


def test_a_kernel_ends_with_its_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the notice says. Elsewhere it goes on, as JupyterLab's users know it."""
    tracker = "@jupyterlab/notebook-extension:tracker"
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(SETTINGS))
    assert "kernelShutdown" not in overrides()[tracker]
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", f"{HOSTED / 'jupyter'}{os.pathsep}{SETTINGS}")
    assert overrides()[tracker] == {"kernelShutdown": True, "codeCellConfig": {"lineWrap": True}}


def overrides() -> dict[str, Any]:
    """The course's defaults for JupyterLab's settings, as its server finds them."""
    found: dict[str, Any] = ConfigManager(config_dir_name="labconfig").get("default_setting_overrides")
    return found


class Session:
    """One that starts in this process, with a small course, and with stand-ins for what would be fetched or is slow."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = home / "learner"
        self.opened = home / "opened"
        self.jupyter = home / "bin/jupyter"
        self.jupyter.parent.mkdir()
        self.jupyter.write_text(f'#!/bin/sh\necho "$*" >>"{self.opened}"\n')
        self.jupyter.chmod(0o755)
        image = home / "image"
        write_course(image, "as the image has it")
        monkeypatch.chdir(image)
        for name in [name for name in os.environ if name.startswith(("KAFKALAB_", "BINDER_", "JUPYTER"))]:
            del os.environ[name]
        os.environ |= {CONTENT_FOLDER: str(image), "KAFKALAB_WORKSPACE": str(self.folder), "HOME": str(home)}
        monkeypatch.setattr("kafkalab.cli.hosted.start.tools_dir", lambda: Path("/tools"))
        os.environ["PATH"] = f"{self.jupyter.parent}:{os.environ['PATH']}"
        monkeypatch.setattr("kafkalab.course.workspace.find_course", find_course.__wrapped__)
        monkeypatch.setattr("kafkalab.cli.hosted.start.platformdirs.user_data_path", lambda name: home / name)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    before = dict(os.environ)
    yield Session(tmp_path, monkeypatch)
    os.environ.clear()
    os.environ.update(before)


def write_course(folder: Path, text: str) -> None:
    for name in (FIRST, LAB):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text, id="text")]), folder / name)


def test_a_session_has_its_workspace_and_works_in_it(session: Session) -> None:
    os.environ |= {"JUPYTER_PATH": "/own/data", "JUPYTER_CONFIG_PATH": "/own/config"}
    make_ready("binder")
    assert str(Path.cwd()) == os.environ["KAFKALAB_WORKSPACE"] == str(session.folder)
    assert os.environ["KAFKALAB_BACKEND"] == "local"
    assert os.environ["KAFKALAB_PROGRESS"] == f"{session.folder}/{HIDDEN}/progress"
    assert os.environ["PATH"].startswith("/tools:")
    assert os.environ["JUPYTER_PATH"] == f"{SETTINGS}:/own/data"
    assert os.environ["JUPYTER_CONFIG_PATH"] == f"{HOSTED}/jupyter:{SETTINGS}:/own/config"
    assert "as the image has it" in (session.folder / FIRST).read_text()
    assert (session.folder / NOTICE_FILE).read_text() == NOTICES["binder"]


def test_a_workspace_opens_its_first_chapter_once(session: Session) -> None:
    """On a hub it stays, and the learner's own tabs open the next time."""
    for _ in range(2):
        make_ready("hub")
    assert session.opened.read_text() == f"lab workspaces import {HOSTED}/workspace.json\n"
    assert (session.folder / NOTICE_FILE).read_text() == NOTICES["hub"]


def test_a_session_starts_without_what_it_cannot_have(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DownloadError("no network")

    monkeypatch.setattr("kafkalab.cli.hosted.start.tools_dir", fail)
    session.jupyter.write_text("#!/bin/sh\nexit 1\n")
    make_ready("binder")
    said = capsys.readouterr().err
    assert "the commands of Kafka aren't on the path: no network\n" in said
    assert "the first chapter won't open by itself: " in said
    (tmp_path / "file").touch()
    os.environ["KAFKALAB_WORKSPACE"] = str(tmp_path / "file/folder")
    make_ready("binder")
    assert "there is no workspace: " in capsys.readouterr().err


def test_a_session_of_the_script_becomes_the_server(tmp_path: Path) -> None:
    """The cluster for its first cell is for this server, and ends when the server does."""
    become = "import sys; from kafkalab.cli.hosted.start import become; become(sys.argv[1:])"
    show = "echo $$; pgrep -P $$ -f kafkalab.cli.hosted.standby"
    environment = os.environ | {"JUPYTER_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", become, "sh", "-c", show], env=environment, capture_output=True, text=True)
    server, standby = map(int, done.stdout.split())
    assert server != standby
    wait_until(lambda: not psutil.pid_exists(standby), PATIENCE, "the standby program to end")
    done = subprocess.run([sys.executable, "-c", become, "jupyter-lob"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "jupyter-lob can't be started: No such file or directory\n")


def test_a_session_is_at_a_place() -> None:
    done = subprocess.run([sys.executable, "-m", hosted.__name__, "moon", "pwd"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "usage: python -m kafkalab.cli.hosted {binder,hub} COMMAND...\n")


def test_work_is_taken_along_and_taken_up_again_as_the_notice_says(session: Session, tmp_path: Path) -> None:
    commands = re.findall(r"^kafkalab (.+)$", NOTICES["binder"], re.MULTILINE)
    assert commands == re.findall(r"^kafkalab (.+)$", NOTICES["hub"], re.MULTILINE)
    for name, command in zip(("first", "second"), commands, strict=True):
        os.environ["KAFKALAB_WORKSPACE"] = str(tmp_path / name)
        os.environ.pop("KAFKALAB_PROGRESS", None)
        os.chdir(tmp_path)
        make_ready("binder")
        if name == "first":
            Path(FIRST).write_text("my work")
            progress.record_lab("02_failsafe", True)
        else:
            shutil.copy(tmp_path / "first/work.zip", ".")
        assert main(command.split()) == 0
    assert Path(FIRST).read_text() == "my work"
    assert progress.load().labs["02_failsafe"].passed


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course's repository, with an engine that is installed here and a text that isn't."""
    installed, folder = tmp_path / "installed", tmp_path / "remote"
    for package in (installed / "smallengine", folder / "src/smallengine"):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("VERSION = 1\n")
    monkeypatch.syspath_prepend(installed)
    (installed / "smallengine/content/solutions").mkdir(parents=True)
    (installed / "smallengine/content/solutions/book.py").touch()  # of a wheel
    write_course(folder, "as of today")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    return folder


def git(folder: Path, *command: str) -> None:
    author = ("-c", "user.name=author", "-c", "user.email=author@example.org", "-c", "commit.gpgsign=false")
    subprocess.check_call(["git", "-C", folder, *author, *command], stderr=subprocess.DEVNULL)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=Change a text")


def test_a_changed_text_reaches_sessions_without_a_new_image(session: Session, repository: Path) -> None:
    os.environ |= {"BINDER_REQUEST": "v2/gh/somebody/course/binder", "BINDER_REPO_URL": str(repository)}
    make_ready("binder")
    assert "as of today" in (session.folder / FIRST).read_text()
    assert (session.folder / NOTICE_FILE).read_text() == NOTICES["binder"]
    fetched = find_course.__wrapped__().content.root  # what the session's kernels use, for solutions too
    assert os.environ[CONTENT_FOLDER] == str(fetched) != str(repository)
    assert not os.stat(fetched / FIRST).st_mode & 0o222
    assert os.access(session.folder / FIRST, os.W_OK)
    git(repository, "checkout", "--quiet", "-b", "class")
    write_course(repository, "as of tomorrow")
    commit(repository)
    git(repository, "checkout", "--quiet", "main")
    os.environ["KAFKALAB_CONTENT"] = f"{repository}#class"
    make_ready("binder")
    assert "as of tomorrow" in (session.folder / FIRST).read_text()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"BINDER_REQUEST": "v2/gh/somebody/course/main", "BINDER_REPO_URL": "https://example.org/course"}, None),
        (
            {"BINDER_REQUEST": "v2/gh/somebody/course/binder", "BINDER_REPO_URL": "https://example.org/course"},
            "https://example.org/course",
        ),
        ({"KAFKALAB_CONTENT": "/course#class"}, "/course#class"),
    ],
)
def test_a_link_says_where_the_texts_come_from(
    environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BINDER_REQUEST", "BINDER_REPO_URL", "KAFKALAB_CONTENT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert source() == expected


def test_texts_that_cannot_be_fetched_leave_the_ones_of_the_image(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ["KAFKALAB_CONTENT"] = str(tmp_path / "nowhere")
    make_ready("binder")
    sentence = "his session has the texts of its image: the texts can't be fetched: fatal: "
    assert f"t{sentence}" in capsys.readouterr().err
    assert f"\n**Texts.** T{sentence}" in (session.folder / NOTICE_FILE).read_text()
    assert "as the image has it" in (session.folder / FIRST).read_text()


def test_texts_for_another_engine_are_refused(repository: Path, tmp_path: Path) -> None:
    fetched = tmp_path / "fetched"
    fetch_content(str(repository), fetched)
    engine = repository / "src/smallengine"
    (engine / "__init__.py").write_text("VERSION = 2\n")
    commit(repository)
    with pytest.raises(
        KafkaLabError, match=r"are for another version of kafkalab than .*: smallengine/__init__.py differs. Whoever keeps the"
    ):
        fetch_content(str(repository), fetched)
    (engine / "__init__.py").write_text("VERSION = 1\n")
    (engine / "more.lock").touch()
    commit(repository)
    with pytest.raises(KafkaLabError, match=r": smallengine/more.lock differs"):
        fetch_content(str(repository), fetched)
    engine.rename(repository / "src/otherengine")
    commit(repository)
    with pytest.raises(KafkaLabError, match=r": otherengine differs"):
        fetch_content(str(repository), fetched)
    shutil.rmtree(repository / "labs")
    commit(repository)
    with pytest.raises(KafkaLabError, match=f"there are no chapters and labs in {repository}$"):
        fetch_content(str(repository), fetched)
    with pytest.raises(KafkaLabError, match="the texts can't be fetched: fatal: .*nobranch"):
        fetch_content(f"{repository}#nobranch", fetched)
    assert "as of today" in (fetched / FIRST).read_text()  # what was there stays
    assert not (tmp_path / "fetched.new").exists()


def test_a_machine_without_git_is_told(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(KafkaLabError, match="the texts can't be fetched: .*git"):
        fetch_content(str(repository), tmp_path / "fetched")


def test_a_folder_without_texts_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT_FOLDER, str(tmp_path))
    with pytest.raises(KafkaLabError, match=f"no chapters and labs in {tmp_path}, the folder that {CONTENT_FOLDER} names"):
        find_course.__wrapped__()


def test_a_clone_with_its_history_is_small(tmp_path: Path) -> None:
    """Binder refuses large ones."""
    shared = ["git", "-C", str(ROOT), "count-objects", "-v"]
    if subprocess.run(shared, capture_output=True, check=False).returncode:
        pytest.skip("this is no clone")
    git(tmp_path, "clone", "--quiet", "--no-hardlinks", "--single-branch", f"file://{ROOT}", "clone")
    size = sum(path.stat().st_size for path in (tmp_path / "clone").rglob("*") if path.is_file())
    assert 1 << 20 < size < LARGEST_CLONE


def test_the_scripts_can_be_run() -> None:
    assert all(os.access(ROOT / "binder" / name, os.X_OK) for name in ("postBuild", "start"))
