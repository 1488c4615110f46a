"""Apicurio Registry on disk: downloaded on first use, verified, unpacked, with a class-data archive of its own."""

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

# A path that the server does not know is answered by its Undertow, of Quarkus 3.33. That takes a header, "Content-Encoding:
# identity", out of the answer once it is on its way. When another thread is writing the headers at that moment, it fails, and
# the answer never comes. Mended in Quarkus 3.36, https://github.com/quarkusio/quarkus/pull/53646. confluent_kafka asks for
# such a path, "associations", before each new subject, and hung now and then beside a server that had just started.
# The method that comes too late does nothing here, and the header stays. This patch can go as soon as the locked registry
# is built on Quarkus 3.36 or newer: lib/main/io.quarkus.quarkus-core-*.jar in it tells.
_TOO_LATE = "io/quarkus/undertow/runtime/UndertowDeploymentRecorder$4$1.class"
_TOO_LATE_CODE = bytes.fromhex("2bb9001101009900112ab400072ab40001b40017b8001db1")  # if (result.succeeded()) …
_NOTHING = bytes(len(_TOO_LATE_CODE) - 1) + _TOO_LATE_CODE[-1:]  # `nop` up to the `return`


def _locked() -> Jar:
    [archive] = locked_jars("registry")
    return archive


def _folder() -> Path:
    # Named after the content: what was made from another archive, or mended otherwise, is not taken for this one.
    return cache_dir() / "registries" / f"apicurio-{hashlib.sha256(_locked().sha256.encode() + _NOTHING).hexdigest()[:12]}"


def has_registry() -> bool:
    """Whether the registry is in the cache, unpacked."""
    return _folder().exists()


def ensure_registry(report: Report | None = None) -> Path:
    """Make sure that the registry is in the cache, unpacked, and return its folder.

    What is downloaded is compared with the locked SHA-256 before it is unpacked. Interrupted at any moment, the cache
    holds the whole folder or none. Of several processes that call this at the same time, one works and the others wait.

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
    shutil.rmtree(archive.parent)  # its content is here now


def _mended_jar(folder: Path) -> Path:
    return folder / "quarkus/mended-bytecode.jar"


def _mend(folder: Path) -> None:
    """Lay the mended class beside the unpacked server."""
    [jar] = folder.glob("lib/main/io.quarkus.quarkus-undertow-3*.jar")
    with zipfile.ZipFile(jar) as original, zipfile.ZipFile(_mended_jar(folder), "w") as mended:
        code = original.read(_TOO_LATE)
        assert code.count(_TOO_LATE_CODE) == 1, f"{jar.name} is not the one that is mended here"
        mended.writestr(_TOO_LATE, code.replace(_TOO_LATE_CODE, _NOTHING))


def registry_classpath(folder: Path) -> str:
    """Everything on one class path.

    The server's own launcher has a class loader of its own, whose classes no class-data archive can hold; started like
    this it is ready in a third of the time.
    """
    first = [_mended_jar(folder), folder / "quarkus/transformed-bytecode.jar", folder / "quarkus/generated-bytecode.jar"]
    return os.pathsep.join(map(str, [*first, *sorted(folder.glob("app/*.jar")), *sorted(folder.glob("lib/*/*.jar"))]))


def registry_archive() -> ClassDataArchive:
    """The class-data archive of this registry."""
    return ClassDataArchive("registry", _folder().name, "registry")
