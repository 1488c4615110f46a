"""Convert settings to the form of Kafka, of librdkafka, and of a ``.properties`` file."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["as_text", "dotted", "format_properties", "value_as_text"]

# librdkafka's settings with an underscore in their own name.
_UNDERSCORED = ("log_level",)

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def as_text(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings with each value as Kafka reads it.

    Raises
    ------
    ValueError
        If a name is empty or isn't text, or a value is None.
    """
    for name, value in settings.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a setting is text like 'num.partitions', not {name!r}")
        if value is None:
            raise ValueError(f"the setting {name} has no value; leave it out to get Kafka's default")
    return {name: value_as_text(value) for name, value in settings.items()}


def value_as_text(value: object) -> str:
    """Return a value as Kafka reads it: booleans in lower case, everything else as Python prints it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def dotted(settings: Mapping[str, object]) -> dict[str, object]:
    """Replace underscores by dots in settings from keyword arguments: ``group_id`` becomes ``group.id``."""
    return {name if name in _UNDERSCORED else name.replace("_", "."): value for name, value in settings.items()}


def format_properties(properties: Mapping[str, str]) -> str:
    r"""Return the text of a ``.properties`` file, in plain ASCII.

    Kafka reads such files with ``java.util.Properties``, which decodes them as Latin-1. So everything outside plain
    ASCII is escaped as ``\uXXXX``. A value with a line break stays one value.
    """
    return "".join(f"{_escaped(name, ' =:#!')}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(text: str, special: str = "") -> str:
    escaped = "".join(f"\\{char}" if char in special else _ESCAPES.get(char) or _ascii(char) for char in text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped  # java.util.Properties skips blanks before a value


def _ascii(char: str) -> str:
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
