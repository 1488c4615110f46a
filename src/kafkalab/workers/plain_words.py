"""Turn librdkafka's errors into lines that read well and are the same on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from confluent_kafka import KafkaError

__all__ = ["Warnings", "in_plain_words"]

# "sasl_ssl://127.0.0.1:9092/0: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"
_ADDRESS = r"(?:\w+://)?[^\s/]+:\d+"
_FROM_BROKER = re.compile(rf"^(?:{_ADDRESS}(?:/(?P<id>\w+))?|GroupCoordinator(?:: {_ADDRESS})?): (?P<what>.*)$")
_CONNECT = re.compile(r"^Connect to \S+ failed: ")
_DETAIL = re.compile(r"\s*\((?:after|average|install|this)\b.*$")


def in_plain_words(error: KafkaError) -> tuple[str, str]:
    """Return the source of an error and its description, without ports, times or paths.

    Returns
    -------
    tuple
        The broker concerned (``broker 0``, ``group coordinator``, ``bootstrap server``) or else the error's name, and
        the description.
    """
    text = error.str()
    if error.name() == "_ALL_BROKERS_DOWN":
        return error.name(), "all brokers are down"  # librdkafka adds a number, which also counts addresses
    match = _FROM_BROKER.match(text)
    if not match:
        return error.name(), text
    what = _DETAIL.sub("", _CONNECT.sub("", match["what"]))
    if text.startswith("GroupCoordinator"):
        who = "group coordinator"
    elif match["id"] is None or not match["id"].isdigit():
        who = "bootstrap server"
    else:
        who = f"broker {match['id']}"
    return who, what if what[:2].isupper() else what[:1].lower() + what[1:]


class Warnings:
    """Turn errors into lines, each once: librdkafka repeats itself with every attempt to connect.

    A message about a broker is repeated only after a different one about it. That all brokers are down is repeated only
    after one has answered.
    """

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def say(self, error: KafkaError) -> Iterator[str]:
        """Yield the line for this error, unless it's a repetition."""
        who, what = in_plain_words(error)
        if self._last.get(who) != what:
            self._last[who] = what
            yield f"WARN {who}: {what}"

    def answered(self) -> None:
        """Note that a broker answered."""
        self._last.pop("_ALL_BROKERS_DOWN", None)
