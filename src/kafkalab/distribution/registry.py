"""Apicurio Registry on disk: downloaded on first use, verified, unpacked, with its own class-data archive."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from kafkalab.distribution.archive import ClassDataArchive
from kafkalab.distribution.jars import Jar, ensure_jars, locked_jars
from kafkalab.distribution.shared import Report, cache_folder, made_by_one, mark_used
from kafkalab.paths import cache_dir
from kafkalab.tar import unpack

__all__ = ["REGISTRY_MAIN", "ensure_registry", "has_registry", "registry_archive", "registry_classpath"]

REGISTRY_MAIN = "io.quarkus.runner.GeneratedMain"
"""The server's main class."""

# Undertow, in Quarkus 3.33, answers paths that the server doesn't know. It then removes a header, "Content-Encoding:
# identity", from a response that is already on its way. If another thread is writing the headers at that moment, the
# removal fails, and the response never arrives. Quarkus 3.36 fixes that,
# https://github.com/quarkusio/quarkus/pull/53646. confluent_kafka requests such a path, "associations", before each new
# subject, and sometimes hung beside a server that had just started. The patch below empties the method that comes too
# late, so the header stays. Remove it once the locked registry is built on Quarkus 3.36 or newer: see
# lib/main/io.quarkus.quarkus-core-*.jar in it.
_TOO_LATE = "io/quarkus/undertow/runtime/UndertowDeploymentRecorder$4$1.class"
_TOO_LATE_CODE = bytes.fromhex("2bb9001101009900112ab400072ab40001b40017b8001db1")  # if (result.succeeded()) …
_NOTHING = bytes(len(_TOO_LATE_CODE) - 1) + _TOO_LATE_CODE[-1:]  # `nop` up to the `return`


def _locked() -> Jar:
    [archive] = locked_jars("registry")
    return archive


def _folder() -> Path:
    # Named after the content, so that a folder from another download or with another patch isn't mistaken for this one.
    return cache_dir() / "registries" / f"apicurio-{hashlib.sha256(_locked().sha256.encode() + _NOTHING).hexdigest()[:12]}"


def has_registry() -> bool:
    """Return whether the registry is in the cache, unpacked."""
    return _folder().exists()


def ensure_registry(report: Report | None = None) -> Path:
    """Make sure that the registry is in the cache, unpacked, and return its folder.

    A download must match the locked SHA-256 before it's unpacked. Even after an interrupt, the cache holds the whole
    folder or none. If several processes call this at the same time, one works and the others wait.

    Parameters
    ----------
    report
        Called with the progress in bytes.

    Raises
    ------
    DownloadError
        If the registry can't be downloaded.
    HashMismatch
        If the download doesn't match the lock.
    """
    folder = _folder()
    mark_used(folder)
    if not folder.exists():
        with made_by_one(folder, "the schema registry", report):
            if not folder.exists():
                _unpack(folder, report)
    return folder


def _unpack(folder: Path, report: Report | None) -> None:
    [archive] = ensure_jars("registry", report)
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="unpack-") as scratch:
        if report:
            report("unpacking the schema registry", 0, 1)
        with tarfile.open(archive) as packed:
            unpack(packed, Path(scratch, "whole"))
        _mend(Path(scratch, "whole"))
        Path(scratch, "whole").replace(cache_folder("registries") / folder.name)
    shutil.rmtree(archive.parent)  # its content is now in the folder


def _mended_jar(folder: Path) -> Path:
    return folder / "quarkus/mended-bytecode.jar"


def _mend(folder: Path) -> None:
    """Write the patched class beside the unpacked server."""
    [jar] = folder.glob("lib/main/io.quarkus.quarkus-undertow-3*.jar")
    with zipfile.ZipFile(jar) as original, zipfile.ZipFile(_mended_jar(folder), "w") as mended:
        code = original.read(_TOO_LATE)
        assert code.count(_TOO_LATE_CODE) == 1, f"{jar.name} is not the one that is mended here"
        mended.writestr(_TOO_LATE, code.replace(_TOO_LATE_CODE, _NOTHING))


def registry_classpath(folder: Path) -> str:
    """Return everything as one class path.

    The server's own launcher uses a custom class loader, whose classes no class-data archive can hold. Started from
    this class path, it's ready in a third of the time.
    """
    first = [_mended_jar(folder), folder / "quarkus/transformed-bytecode.jar", folder / "quarkus/generated-bytecode.jar"]
    return os.pathsep.join(map(str, [*first, *sorted(folder.glob("app/*.jar")), *sorted(folder.glob("lib/*/*.jar"))]))


def registry_archive() -> ClassDataArchive:
    """Return the class-data archive of this registry."""
    return ClassDataArchive("registry", _folder().name, "registry")
