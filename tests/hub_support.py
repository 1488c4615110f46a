"""A class hub on this machine: JupyterHub, a Python with the course, and users of the system that are gone afterwards."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafkalab.paths import cache_dir
from kafkalab.waiting import wait_until
from kafkalab_hub.client import Hub
from support import PATIENCE

ROOT = Path(__file__).parents[1]
JUPYTERHUB = "jupyterhub>=6,<7"
PROXY = "configurable-http-proxy@5"
PORT = 18_000
"""Of the proxy that browsers talk to, and with the next one the hub does. Below all ports that the system gives away."""
CACHED = ("archives", "jars", "registries", "environments", "plugins")

CONFIG = """
from pathlib import Path

from kafkalab_hub.configuration import ClassHub, add_culler, configure
from kafkalab_hub.network import Network
from kafkalab_hub.spawner import NamespaceSpawner

c = get_config()
configure(c, ClassHub(course=Path({course!r}), environment=Path({environment!r}), cache=Path({cache!r}), memory={memory!r}, **{more}))
add_culler(c)
c.JupyterHub.spawner_class = NamespaceSpawner
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.cookie_secret = bytes(32)
c.JupyterHub.authenticator_class = "null"
c.Authenticator.allowed_users = set({users!r})
c.JupyterHub.services.append({{"name": "test", "api_token": {token!r}}})
c.JupyterHub.load_roles.append(
    {{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers", "tokens", "access:servers"]}}
)
c.Spawner.environment = {{**c.Spawner.environment, **{jupyter!r}}}
c.ConfigurableHTTPProxy.command = {proxy!r}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
"""


@dataclass(frozen=True)
class Installed:
    """Programs of a hub, in a folder that everybody can read."""

    folder: Path

    @property
    def hub(self) -> Path:
        return self.folder / "hub/bin/python"

    @property
    def environment(self) -> Path:
        return self.folder / "env"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def proxy(self) -> Path:
        return self.folder / "proxy/node_modules/.bin/configurable-http-proxy"


def install(folder: Path) -> Installed:
    """The hub's Python, its proxy, the course's Python with this one's packages, and a cache with this one's entries."""
    folder.chmod(0o755)
    installed = Installed(folder)
    uv = Path(sysconfig.get_path("scripts"), "uv")
    python = Path("/usr/bin/python3")  # this one may lie where nobody else can read it
    for name in ("hub", "env"):
        _run(python, "-m", "venv", "--without-pip", folder / name)
    pip = (uv, "pip", "install", "--quiet", "--python")
    _run(*pip, installed.hub, JUPYTERHUB, ROOT / "hub")
    _run(*pip, folder / "env/bin/python", "--constraint", ROOT / "requirements/pins.txt", JUPYTERHUB)
    [packages] = (folder / "env/lib").glob("python*/site-packages")
    (packages / "course.pth").write_text(
        "\n".join(map(str, (ROOT / "src", ROOT / "pipeline/src", sysconfig.get_path("purelib"))))
    )
    script = folder / "env/bin/kafkalab"
    script.write_text(f"#!{folder}/env/bin/python\nfrom kafkalab.cli import main\nraise SystemExit(main())\n")
    script.chmod(0o755)
    _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder / "proxy", PROXY)
    for name in CACHED:
        if (cache_dir() / name).is_dir():
            shutil.copytree(cache_dir() / name, installed.cache / name, copy_function=os.link, symlinks=True)
    for links in installed.cache.glob("archives/spark-*/jars"):
        shutil.rmtree(links)  # to where nobody else can read
    environment = {**os.environ, "KAFKALAB_CACHE": str(installed.cache)}
    _run(folder / "env/bin/kafkalab", "fetch", "--all", environment=environment)
    _run(folder / "env/bin/python", "-c", "from kafkalab.spark.archive import classpath; classpath()", environment=environment)
    return installed


@contextmanager
def users(names: Sequence[str]) -> Iterator[None]:
    """Users of the system, each with a home that's theirs alone."""
    with ExitStack() as ending:
        for name in names:
            _run("useradd", "--create-home", "--shell", "/bin/bash", "--key", "HOME_MODE=0700", name)
            ending.callback(_run, "userdel", "--remove", name)
        yield


@contextmanager
def hub(
    installed: Installed, names: Sequence[str], folder: Path, *, port: int = PORT, memory: str = "2G", more: str = "{}"
) -> Iterator[Hub]:
    """A hub with these users, and an API token that may start their servers. All servers end with it."""
    token = secrets.token_hex(16)
    config = folder / "jupyterhub_config.py"
    shared = sys.prefix
    config.write_text(CONFIG.format(
        course=str(ROOT), environment=str(installed.environment), cache=str(installed.cache), memory=memory, more=more,
        port=port, proxy_port=port + 1, users=list(names), token=token, proxy=[str(installed.proxy)],
        # JupyterLab's pages lie beside this Python.
        jupyter={
            "JUPYTERLAB_DIR": f"{shared}/share/jupyter/lab",
            "JUPYTER_PATH": f"{shared}/share/jupyter",
            "JUPYTER_CONFIG_PATH": f"{shared}/etc/jupyter",
        },
    ))  # fmt: skip
    config.chmod(0o600)
    log = folder / "hub.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [installed.hub, "-m", "jupyterhub", "--config", config], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)},
        )  # fmt: skip
    running = Hub(f"http://127.0.0.1:{port}", token)
    try:
        wait_until(
            lambda: _answers(running), PATIENCE, "the hub to answer",
            unless=lambda: _ended(process, log), last_seen=lambda: log.read_text()[-2000:],
        )  # fmt: skip
        yield running
    finally:
        try:
            for user in running.ask("users") if process.poll() is None else ():
                if user["servers"]:
                    running.stop(user["name"])
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _answers(running: Hub) -> bool:
    try:
        with urllib.request.urlopen(f"{running.address}/hub/api/", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _ended(process: subprocess.Popen[bytes], log: Path) -> None:
    assert process.poll() is None, log.read_text()[-4000:]


def _run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
