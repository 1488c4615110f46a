"""Kerberos over SASL (GSSAPI), also for a Java without it.

The JDK's own is in the module ``jdk.security.jgss``, which the course's Java lacks. WildFly's Elytron has another one,
an ordinary security provider. It goes on the class path, and a file of security properties adds it to the list of
providers.
"""

from __future__ import annotations

import re
from pathlib import Path

from kafkalab.distribution.jars import ensure_jars
from kafkalab.distribution.java import java_command, write_script
from kafkalab.distribution.shared import environment_dir

__all__ = ["gssapi_support"]

_PROVIDER = "org.wildfly.security.sasl.gssapi.WildFlyElytronSaslGssapiProvider"


def gssapi_support() -> tuple[list[Path], list[str]]:
    """Return what a JVM needs for SASL's mechanism GSSAPI: jars to add to its class path, and options.

    Both are empty for a Java with built-in support. The jars are downloaded on first use.

    Raises
    ------
    DownloadError
        If the jars aren't in the cache and can't be downloaded.
    """
    java = java_command()
    home = java.parent.parent
    release = home / "release"
    if not release.exists() or "jdk.security.jgss" in release.read_text():
        return [], []
    numbers = re.findall(r"^security\.provider\.(\d+)=", (home / "conf/security/java.security").read_text(), re.MULTILINE)
    return ensure_jars("gssapi"), [f"-Djava.security.properties={_properties(java, max(map(int, numbers)) + 1)}"]


def _properties(java: Path, number: int) -> Path:
    path = environment_dir(java) / "gssapi.security"
    write_script(path, f"security.provider.{number}={_PROVIDER}\n")
    return path
