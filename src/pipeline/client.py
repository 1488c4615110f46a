"""Translate settings of Kafka's Java client into librdkafka's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["as_librdkafka"]

# What both clients understand, under the same name.
_SAME = ("bootstrap.servers", "client.id", "security.protocol", "sasl.mechanism", "ssl.key.password")

# A PEM text in a setting, and a file of PEM texts: which settings take their place.
_PEM = {
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
}

_LOGIN = re.compile(r"\s*[\w.$]+\.(?:Plain|Scram)LoginModule\s+required\b(.*)", re.DOTALL)
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def as_librdkafka(java: Mapping[str, str]) -> dict[str, Any]:
    """Translate the settings for addresses, TLS and login. Leave out all others.

    Parameters
    ----------
    java
        Settings of a Java client. Files that they name have to be on this machine, too.

    Raises
    ------
    ConnectionError
        When librdkafka has nothing that does the same; the message says what to give instead.
    """
    settings: dict[str, Any] = {name: java[name] for name in _SAME if name in java}
    for name, others in _PEM.items():
        if name in java:
            settings |= dict.fromkeys(others, _pem(java, name))
    if "ssl.endpoint.identification.algorithm" in java:
        settings["ssl.endpoint.identification.algorithm"] = java["ssl.endpoint.identification.algorithm"] or "none"
    if java.get("security.protocol", "").upper().startswith("SASL"):
        settings |= _login(java)
    return settings


def _pem(java: Mapping[str, str], name: str) -> str:
    if not name.endswith(".location"):
        return java[name]
    store = name.removesuffix(".location")
    if java.get(f"{store}.type", "JKS").upper() != "PEM":
        raise ConnectionError(f"{_WITHOUT_JAVA} read {name}: give {store}.type=PEM, and a file of PEM")
    if not Path(java[name]).is_file():
        raise ConnectionError(f"{name} names {java[name]}: there is no such file on this machine, where it's needed, too")
    return java[name]


def _login(java: Mapping[str, str]) -> dict[str, str]:
    module = _LOGIN.match(java.get("sasl.jaas.config", ""))
    options = {name: _plain(*values) for name, *values in _OPTION.findall(module[1])} if module else {}
    if not options.keys() >= {"username", "password"}:
        raise ConnectionError(
            f"{_WITHOUT_JAVA} log in by {java.get('sasl.mechanism', 'GSSAPI')} without a name and a password: give "
            "sasl.mechanism=PLAIN or SCRAM-SHA-512, and sasl.jaas.config with username and password"
        )
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _plain(double: str, single: str, bare: str) -> str:
    return bare or re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), double or single, flags=re.DOTALL)


_WITHOUT_JAVA = "over Spark Connect this process asks Kafka without Java, and can't"
