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

# Works around https://github.com/quarkusio/quarkus/issues/53645, fixed in Quarkus 3.36. Before that, Quarkus' Undertow removes
# the header "Content-Encoding: identity" only after the response was sent. If another thread is writing the headers just then,
# the response never arrives. That happens for paths that the server doesn't know. confluent_kafka requests one of them,
# "associations", before each new subject, so it sometimes hung beside a server that had just started. The patch below empties
# the handler that comes too late, so the header stays. Whether responses are compressed is fixed when the server is built, so
# no setting avoids the handler. Remove the patch once the locked registry is built on Quarkus 3.36 or newer: see
# lib/main/io.quarkus.quarkus-core-*.jar in it.
_LATE_HANDLER = "io/quarkus/undertow/runtime/UndertowDeploymentRecorder$4$1.class"
_LATE_CODE = bytes.fromhex("2bb9001101009900112ab400072ab40001b40017b8001db1")  # if (result.succeeded()) …
_NO_CODE = bytes(len(_LATE_CODE) - 1) + _LATE_CODE[-1:]  # `nop` up to the `return`


def _locked() -> Jar:
    [archive] = locked_jars("registry")
    return archive


def _folder() -> Path:
    # Named after the content, so that a folder from another download or with another patch isn't mistaken for this one.
    return cache_dir() / "registries" / f"apicurio-{hashlib.sha256(_locked().sha256.encode() + _NO_CODE).hexdigest()[:12]}"


def has_registry() -> bool:
    """Return whether the registry is in the cache, unpacked."""
    return _folder().exists()


def ensure_registry(report: Report | None = None) -> Path:
    """Make sure that the registry is in the cache, unpacked, and return its folder.

    A download must match the locked SHA-256 before it's unpacked. Even after an interrupt, the cache holds the whole
    folder or none. If several processes call this at the same time, one works and the others wait.

    Raises
    ------
    DownloadError, HashMismatch
        As `ensure_jars`.
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
        _patch(Path(scratch, "whole"))
        Path(scratch, "whole").replace(cache_folder("registries") / folder.name)
    shutil.rmtree(archive.parent)  # its content is now in the folder


def _patched_jar(folder: Path) -> Path:
    return folder / "quarkus/mended-bytecode.jar"


def _patch(folder: Path) -> None:
    """Write the patched class beside the unpacked server."""
    [jar] = folder.glob("lib/main/io.quarkus.quarkus-undertow-3*.jar")
    with zipfile.ZipFile(jar) as original, zipfile.ZipFile(_patched_jar(folder), "w") as patched:
        code = original.read(_LATE_HANDLER)
        assert code.count(_LATE_CODE) == 1, f"the patch is for another version than {jar.name}"
        patched.writestr(_LATE_HANDLER, code.replace(_LATE_CODE, _NO_CODE))


def registry_classpath(folder: Path) -> str:
    """Return everything as one class path.

    The server's own launcher uses a custom class loader, whose classes no class-data archive can hold. Started from
    this class path, it's ready in a third of the time.
    """
    first = [_patched_jar(folder), folder / "quarkus/transformed-bytecode.jar", folder / "quarkus/generated-bytecode.jar"]
    return os.pathsep.join(map(str, [*first, *sorted(folder.glob("app/*.jar")), *sorted(folder.glob("lib/*/*.jar"))]))


def registry_archive() -> ClassDataArchive:
    """Return the class-data archive of this registry."""
    return ClassDataArchive("registry", _folder().name, "registry")
