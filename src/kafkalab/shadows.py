"""Find the learner's files that hide a package from the course: Python would import ``kafka.py`` instead of ``kafka``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path

from kafkalab.errors import ShadowedModule

__all__ = ["hiding_files", "require_unshadowed", "shadows", "warning"]


def require_unshadowed() -> None:
    """Raise `ShadowedModule` if a file in this process's own folder hides a module that Python would find elsewhere."""
    folder = Path.cwd()
    for place, entry in enumerate(sys.path):
        if not entry or Path(entry) == folder:
            hidden = [*shadows(folder, sys.path[place + 1 :])]
            # Python's own modules that are loaded already are the right ones: nobody looks for them again.
            if hiding := [file for file, name in hidden if not _is_loaded_from_elsewhere(name, folder)]:
                raise ShadowedModule(f"{warning(hiding)}. Then restart the kernel, or the program.")


def shadows(folder: Path, path: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield files in a folder that have the name of a module elsewhere on a path, and that name.

    Parameters
    ----------
    folder
        The folder. Python looks there first.
    path
        Where Python looks next. Entries that name the folder itself don't count.
    """
    others = [entry for entry in path if entry and Path(entry) != folder]
    for file in sorted(folder.iterdir()):
        name = _module_name(file)
        if name and (spec := PathFinder.find_spec(name, others)) and spec.loader is not None:
            yield file, name


def hiding_files(folder: Path) -> list[str]:
    """Return a sentence about the files in a notebook's folder that hide packages from it; nothing if there are none."""
    packages = [entry for entry in sys.path if "packages" in Path(entry).name or _holds_the_course(entry)]
    files = [file for file, _ in shadows(folder, packages)] if folder.is_dir() else []
    return [f"Look out: {warning(files)}."] if files else []


def _holds_the_course(entry: str) -> bool:
    """Return whether a folder has the course's own packages, as in a clone."""
    return any(Path(entry, package, "__init__.py").is_file() for package in ("kafkalab", "truck_pipeline"))


def warning(files: Sequence[Path]) -> str:
    """Return a sentence that names files and says what to do about them."""
    names = ", ".join(map(str, files))
    if len(files) == 1:
        return f"{names} has the name of a package that the course imports, so Python imports your file instead: rename it"
    return f"{names} have the names of packages that the course imports, so Python imports your files instead: rename them"


def _module_name(file: Path) -> str:
    """Return the name under which Python imports a file or folder; an empty text if it doesn't."""
    if file.is_dir():
        # A folder without an __init__ comes last, whatever its place on the path.
        is_package = any((file / f"__init__{suffix}").is_file() for suffix in all_suffixes())
        return file.name if is_package and file.name.isidentifier() else ""
    name = next((file.name.removesuffix(suffix) for suffix in all_suffixes() if file.name.endswith(suffix)), "")
    return name if name.isidentifier() else ""


def _is_loaded_from_elsewhere(name: str, folder: Path) -> bool:
    if name not in sys.stdlib_module_names or name not in sys.modules:
        return False
    return Path(getattr(sys.modules[name], "__file__", None) or "/").parent not in (folder, folder / name)
