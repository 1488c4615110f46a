"""Jupyter as the course needs it, whatever settings, kernels and folders the learner has for other work."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["SETTINGS", "broken_settings", "own_settings", "prefer_course", "use_large_type", "use_writable_folders"]

SETTINGS = Path(__file__).with_name("jupyter")
"""Settings for the course, its kernel, and the extension that shows the panel. Binder and hubs use them, too."""

_PROJECTOR = Path(__file__).with_name("projector")

_NAMES = ("jupyter_config", "jupyter_server_config", "jupyter_lab_config", "jupyter_notebook_config")
_FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")


def prefer_course() -> None:
    """Let Jupyter, in this process and its children, look into the course's folder first: also for the kernel python3."""
    for variable in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"):
        more = [part for part in os.environ.get(variable, "").split(os.pathsep) if part and part != str(SETTINGS)]
        os.environ[variable] = os.pathsep.join([str(SETTINGS), *more])


def use_large_type() -> None:
    """Let JupyterLab begin with type that is large enough for a projector. Call it after `prefer_course`."""
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join([str(_PROJECTOR), os.environ["JUPYTER_CONFIG_PATH"]])


def own_settings() -> list[Path]:
    """Return the files with settings that JupyterLab reads, but for the course's and those of installed packages."""
    from jupyter_core.paths import ENV_CONFIG_PATH, jupyter_config_path

    folders = [Path(folder) for folder in jupyter_config_path() if folder not in (*ENV_CONFIG_PATH, str(SETTINGS))]
    files = [folder / f"{name}{ending}" for folder in folders for name in _NAMES for ending in (".py", ".json")]
    more = [file for folder in folders for name in _NAMES for file in sorted((folder / f"{name}.d").glob("*.json"))]
    return [file for file in (*files, *more) if file.is_file()]


def broken_settings() -> Iterator[str]:
    """Yield a sentence for each of the learner's files with settings that can't be read at all."""
    for file in own_settings():
        try:
            if file.suffix == ".json":
                json.loads(file.read_bytes())
            else:
                compile(file.read_bytes(), file, "exec")
        except (OSError, ValueError, SyntaxError) as error:
            yield f"Your Jupyter settings in {file} can't be read: {error}. Fix that file, or rename it."


def use_writable_folders(instead: Path) -> list[Path]:
    """Let Jupyter use folders that it can write: its usual ones, or else some in another folder.

    Returns
    -------
    list of Path
        The usual ones that can't be written.
    """
    from jupyter_core.paths import jupyter_config_dir, jupyter_data_dir, jupyter_runtime_dir

    ipython = os.environ.get("IPYTHONDIR") or os.path.expanduser("~/.ipython")
    folders = (jupyter_config_dir(), jupyter_data_dir(), jupyter_runtime_dir(), ipython)
    refused = []
    for variable, usual in zip(_FOLDERS, folders, strict=True):
        if not _is_writable(Path(usual)):
            refused.append(Path(usual))
            os.environ[variable] = str(instead / variable.lower())
            with contextlib.suppress(OSError):
                Path(os.environ[variable]).mkdir(parents=True, exist_ok=True)
    return refused


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
