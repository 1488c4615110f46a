"""Kerberos within SASL (GSSAPI), also for a Java that was made without it.

The JDK's own is in the module ``jdk.security.jgss``, which the course's Java lacks. WildFly's Elytron has another one, a
security provider like any: it is put on the class path, and into the list of providers by a file of security properties.
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
    """What a JVM needs for SASL's mechanism GSSAPI: jars to be added to its class path, and options.

    Both are empty for a Java that has it built in. The jars are downloaded on first use.

    Raises
    ------
    DownloadError
        When they are not here and cannot be downloaded.
    """
    java = java_command()
    home = java.parent.parent
    release = home / "release"
    if not release.exists() or "jdk.security.jgss" in release.read_text():
        return [], []
    known = re.findall(r"^security\.provider\.(\d+)=", (home / "conf/security/java.security").read_text(), re.MULTILINE)
    return ensure_jars("gssapi"), [f"-Djava.security.properties={_properties(java, max(map(int, known)) + 1)}"]


def _properties(java: Path, number: int) -> Path:
    path = environment_dir(java) / "gssapi.security"
    write_script(path, f"security.provider.{number}={_PROVIDER}\n")
    return path
