"""JAAS lines, which give Kafka's Java side its login."""

from __future__ import annotations

from kafkalab.settings import value_as_text

__all__ = ["MECHANISMS", "login_line"]

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}

# A JAAS line is a single line: java.io.StreamTokenizer ends quoted text at a line break.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}

MECHANISMS = tuple(_MODULES)
"""SASL mechanisms that `login_line` supports."""


def login_line(mechanism: str, **options: object) -> str:
    """Return the value of ``sasl.jaas.config`` for a mechanism.

    Parameters
    ----------
    mechanism
        ``PLAIN``, ``SCRAM-SHA-256``, ``SCRAM-SHA-512`` or ``GSSAPI``.
    **options
        Options of its login module, as in ``username="alice"``. Values may contain quotes, backslashes and line breaks.

    Raises
    ------
    ValueError
        If the mechanism isn't one of these.
    """
    if mechanism not in _MODULES:
        raise ValueError(f"there is no login module for {mechanism!r}; there are {', '.join(MECHANISMS)}")
    settings = "".join(f' {name}="{_quoted(value)}"' for name, value in options.items())
    return f"{_MODULES[mechanism]} required{settings};"


def _quoted(value: object) -> str:
    return "".join(_ESCAPES.get(char, char) for char in value_as_text(value))
