"""What Binder will do, here: build as an ordinary user without Docker, start, and run chapter 02 within 2 GB.

The build finds packages and jars where it would put them, as files shared with this environment, and downloads nothing. With
``KAFKALAB_BINDER=scratch`` (`make test-all`) it starts with nothing, as on Binder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kafkalab.paths import cache_dir
from kafkalab.waiting import wait_until
from memory_watch import MemoryWatch, memory_limit
from support import PATIENCE

pytestmark = [pytest.mark.network, pytest.mark.cluster, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
LIMIT = 2 << 30
CHAPTER_SECONDS = 600
"""In which the chapter must be through."""

CHAPTER = "notebooks/02_cluster_failover.ipynb"

# Root hands the work to this user, who owns nothing and belongs to no group.
USER, GROUP = "nobody", "nogroup"
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups", "--no-new-privs")

NOT_COPIED = (".git", ".venv", "__pycache__", "*.egg-info", ".pytest_cache", ".ipynb_checkpoints", "workspace")

# Neither Docker nor a Java of the machine may be found, nor settings of the course that hold here.
NOT_ON_PATH = ("docker", "dockerd", "containerd", "java", "python", "python3")
NOT_IN_ENVIRONMENT = (
    "KAFKALAB_",
    "JUPYTER_",
    "XDG_",
    "PYTEST_",
    "PYTHON",
    "PYSPARK_",
    "VIRTUAL_ENV",
    "TMPDIR",
    "DOCKER_",
    "JAVA_HOME",
)


def as_user(command: Sequence[str | Path]) -> list[str]:
    """The command as an ordinary user, which it is anyway unless these tests run as root."""
    return [*(AS_USER if os.geteuid() == 0 else ()), *map(str, command)]


@dataclass(frozen=True)
class Session:
    """A copy of the course in a home of its own.

    Attributes
    ----------
    home
        The home.
    build_peak
        Bytes of memory that the build of its image took at most.
    """

    home: Path
    build_peak: int = 0

    @property
    def course(self) -> Path:
        return self.home / "course"

    @property
    def cache(self) -> Path:
        return self.home / ".cache/kafkalab"

    @property
    def servers(self) -> Path:
        """Where JupyterLab notes the servers that run."""
        return self.home / "jupyter"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_IN_ENVIRONMENT)}
        return {
            **kept,
            "HOME": str(self.home),
            "USER": USER,
            "TMPDIR": str(self.home / "tmp"),
            "KAFKALAB_CACHE": str(self.cache),
            "JUPYTER_RUNTIME_DIR": str(self.servers),
            "PATH": f"{self.home / 'env/bin'}:{self.home / 'bin'}",
            "DOCKER_HOST": "unix:///nowhere/docker.sock",
        }

    def run(self, *command: str | Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            as_user(command), cwd=self.course, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
        )  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """A session as Binder hands it out: the image was built."""
    home = Path(tempfile.mkdtemp(prefix="kafkalab-binder-"))
    try:
        session = Session(home)
        shutil.copytree(ROOT, session.course, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        (home / "tmp").mkdir()
        (home / "bin").mkdir()
        for folder in map(Path, ("/usr/local/bin", "/usr/bin", "/bin")):
            for program in folder.iterdir():
                link = home / "bin" / program.name
                if not program.name.startswith(NOT_ON_PATH) and not link.is_symlink():
                    link.symlink_to(program)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", f"{USER}:{GROUP}", home], check=True)
        _make_environment(session)
        if os.environ.get("KAFKALAB_BINDER") != "scratch":
            _share_downloads(session)
        with memory_limit(LIMIT) as inside, MemoryWatch(LIMIT) as watch:
            built = subprocess.run(
                [*inside, *as_user(["binder/postBuild"])], cwd=session.course, env=session.environment() | watch.environment(),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
            )  # fmt: skip
        assert built.returncode == 0, f"{watch.peak / 1e9:.2f} GB were used at most; {built.stdout[-4000:]}"
        yield replace(session, build_peak=watch.peak)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _make_environment(session: Session) -> None:
    """With the first Python that the ordinary user can use: the one that runs this may lie in root's home."""
    said = []
    for candidate in dict.fromkeys(map(os.path.realpath, (sys.executable, "/usr/bin/python3"))):
        made = session.run(candidate, "-m", "venv", "--clear", session.home / "env")
        if made.returncode == 0:
            return
        said.append(f"{candidate}: {made.stdout}")
    pytest.fail("no Python here can be used by an ordinary user; on Debian: apt-get install python3-venv. " + "; ".join(said))


def _share_downloads(session: Session) -> None:
    """Put this environment's packages and this cache's entries where the build of the session would put them."""
    bin_here, bin_there = Path(sys.executable).parent, session.home / "env/bin"
    site_there = session.run(
        bin_there / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
    ).stdout.strip()
    site_here = sysconfig.get_path("purelib")
    if Path(site_here).parent.name != Path(site_there).parent.name:
        return  # another version of Python: its packages are others
    _share(
        Path(site_here),
        Path(site_there),
        ignore=shutil.ignore_patterns("__editable__*", "kafkalab-*", "truck_pipeline-*", "pip", "pip-*"),
    )
    for script in bin_here.iterdir():
        if script.name.startswith(("python", "pip", "activate", "kafkalab")) or (bin_there / script.name).exists():
            continue
        content = script.read_bytes()
        if content.startswith(b"#!") and bytes(bin_here) in content:
            (bin_there / script.name).write_bytes(content.replace(bytes(bin_here), bytes(bin_there)))
            (bin_there / script.name).chmod(0o755)
        else:
            os.link(script, bin_there / script.name)
    for name in ("archives", "jars", "registries"):
        if (cache_dir() / name).exists():
            _share(cache_dir() / name, session.cache / name)
    if os.geteuid() == 0:  # folders only: the files are this environment's
        for folder in (session.home / "env", session.home / ".cache"):
            subprocess.run(["find", folder, "-type", "d", "-exec", "chown", f"{USER}:{GROUP}", "{}", "+"], check=True)


def _share(source: Path, target: Path, **options: Any) -> None:
    def link(file: str, copy: str) -> None:
        if not os.path.exists(copy):
            try:
                os.link(file, copy)
            except OSError:  # on another disk
                shutil.copy2(file, copy)

    shutil.copytree(source, target, copy_function=link, dirs_exist_ok=True, symlinks=True, **options)


def test_build_needs_neither_docker_nor_java(session: Session) -> None:
    assert session.run("bash", "-c", "command -v docker java").stdout == ""
    doctor = session.run("binder/start", "kafkalab", "doctor")
    assert doctor.returncode == 0, doctor.stdout


def test_build_within_two_gigabytes(session: Session, measured: Callable[[str], None]) -> None:
    """Binder ends a build that takes more."""
    measured(f"Binder rehearsal: the build took {session.build_peak / 1e9:.2f} GB of memory at most")
    assert 0 < session.build_peak <= LIMIT


def test_start_has_the_tools_the_backend_and_the_first_chapter(session: Session) -> None:
    shown = session.run("binder/start", "bash", "-c", 'echo "$KAFKALAB_BACKEND"; command -v kafka-topics.sh')
    assert shown.returncode == 0, shown.stdout
    assert "local" in shown.stdout.splitlines()
    assert "kafka-topics.sh" in shown.stdout
    exported = session.run("jupyter", "lab", "workspaces", "export", "default")
    wanted = json.loads((ROOT / "src/kafkalab/cli/hosted/workspace.json").read_text())
    assert json.loads(exported.stdout.splitlines()[-1])["data"] == wanted["data"]


def test_start_works_in_the_learners_workspace(session: Session) -> None:
    shown = session.run("binder/start", "pwd").stdout.splitlines()[-1]
    assert shown == str(session.course / "workspace")
    assert (session.course / "workspace" / CHAPTER).exists()
    assert not (session.course / "workspace/solutions").exists()


@pytest.mark.parametrize("cores", [pytest.param(1, marks=pytest.mark.at_length), None], ids=["one core", "all cores"])
def test_chapter_within_two_gigabytes(session: Session, cores: int | None, measured: Callable[[str], None]) -> None:
    """JupyterLab runs beside, as it does on Binder, and counts."""
    processors = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))] if cores else []
    with memory_limit(LIMIT) as inside, MemoryWatch(LIMIT) as watch:
        environment = session.environment() | watch.environment()

        def start(*command: str) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [*inside, *processors, *as_user(["binder/start", *command])], cwd=session.course, env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip

        with start("jupyter-lab", "--no-browser", "--ip=127.0.0.1", "--port=0", "--ServerApp.log_level=CRITICAL") as server:
            try:
                # ValueError: the file with its address is only half written.
                wait_until(lambda: _server_answers(session), PATIENCE, "JupyterLab to answer", ignore=(OSError, ValueError))
                with start("kafkalab", "run", CHAPTER) as chapter:
                    output, _ = chapter.communicate(timeout=CHAPTER_SECONDS)
            finally:
                server.terminate()
                server.communicate(timeout=PATIENCE)
    how = "held to 2 GiB by a control group" if inside else "watched"
    how += ", on one core" if cores else ""
    measured(f"Binder rehearsal: JupyterLab, chapter 02, its brokers and Spark took {watch.peak / 1e9:.2f} GB at most ({how})")
    assert 0 < watch.peak <= LIMIT, f"{watch.peak / 1e9:.2f} GB were used"
    assert chapter.returncode == 0, f"{watch.peak / 1e9:.2f} GB were used at most; {output}"


def _server_answers(session: Session) -> bool:
    servers = session.servers.glob("jpserver-*.json")
    address = next((json.loads(path.read_text())["url"] for path in servers), None)
    if not address:
        return False
    with urllib.request.urlopen(f"{address}api") as answer:
        return answer.status == 200
