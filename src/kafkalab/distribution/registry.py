"""Apicurio Registry on disk: downloaded on first use, verified, unpacked, with a class-data archive of its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkalab.distribution.jars import Jar, Report, ensure_jars, locked_jars
from kafkalab.distribution.java import java_command
from kafkalab.paths import cache_dir
from kafkalab.tar import unpack

__all__ = ["REGISTRY_MAIN", "ensure_registry", "has_registry", "preparing", "registry_archive_path", "registry_classpath"]

REGISTRY_MAIN = "io.quarkus.runner.GeneratedMain"
"""The server's main class."""


def _locked() -> Jar:
    [archive] = locked_jars("registry")
    return archive


def _folder() -> Path:
    # Named after the content: what was unpacked from another archive is not taken for this one.
    return cache_dir() / f"registry-{_locked().sha256[:12]}"


@contextmanager
def preparing() -> Iterator[None]:
    """Let one process at a time download, unpack and prepare; the others wait, and find it done."""
    import fcntl

    cache_dir().mkdir(parents=True, exist_ok=True)
    with open(cache_dir() / "registry.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def has_registry() -> bool:
    """Whether the registry is in the cache, unpacked."""
    return _folder().exists()


def ensure_registry(report: Report | None = None) -> Path:
    """Make sure that the registry is in the cache, unpacked, and return its folder.

    What is downloaded is compared with the locked SHA-256 before it is unpacked. Interrupted at any moment, the cache
    holds the whole folder or none.

    Parameters
    ----------
    report
        Told of progress in bytes.

    Raises
    ------
    DownloadError
        When it cannot be downloaded.
    HashMismatch
        When what was downloaded is not what was locked.
    """
    folder = _folder()
    if folder.exists():
        return folder
    [archive] = ensure_jars("registry", report)
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="unpack-") as scratch:
        if report:
            report("unpacking the schema registry", 0, 1)
        with tarfile.open(archive) as packed:
            unpack(packed, Path(scratch, "whole"))
        Path(scratch, "whole").replace(folder)
    shutil.rmtree(archive.parent)  # its content is here now
    return folder


def registry_classpath(folder: Path) -> str:
    """Everything on one class path.

    The server's own launcher has a class loader of its own, whose classes no class-data archive can hold; started like
    this it is ready in a third of the time.
    """
    first = [folder / "quarkus/transformed-bytecode.jar", folder / "quarkus/generated-bytecode.jar"]
    return os.pathsep.join(map(str, [*first, *sorted(folder.glob("app/*.jar")), *sorted(folder.glob("lib/*/*.jar"))]))


def registry_archive_path() -> Path:
    """Where the class-data archive for this Java and this registry is, or would be."""
    java = java_command()
    key = hashlib.sha256(f"{java}{java.stat().st_mtime_ns}{_folder()}".encode()).hexdigest()[:12]
    return cache_dir() / "archives" / f"registry-{key}.jsa"
