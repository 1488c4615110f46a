"""Measure whether learners reach each other: one learner's server tries every address at which another's listens.

Rules that look right may do nothing, so this looks at no rule. It connects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kafkalab_hub.client import Server

__all__ = ["Attempt", "attempts", "listeners"]

# Run in a learner's kernel. The system says who owns each socket, so a neighbour's don't count where the network is shared.
_LISTENERS = """
import ipaddress, json, os, sys
found = set()
for table in ("tcp", "tcp6"):
    for line in open(f"/proc/self/net/{table}").readlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and int(fields[7]) == os.getuid():
            digits, port = fields[1].split(":")
            words = [bytes.fromhex(digits[i : i + 8]) for i in range(0, len(digits), 8)]
            host = ipaddress.ip_address(b"".join(word[::-1] if sys.byteorder == "little" else word for word in words))
            found.add((str(getattr(host, "ipv4_mapped", None) or host), int(port, 16)))
print(json.dumps(sorted(found)))
"""

_CONNECT = """
import json, socket
results = []
for host, port in json.loads({targets!r}):
    try:
        socket.create_connection((host, port), timeout=2).close()
        results.append("")
    except OSError as error:
        results.append(str(error))
print(json.dumps(results))
"""


@dataclass(frozen=True)
class Attempt:
    """One connection that one learner tried to another's listener.

    Attributes
    ----------
    host, port
        Where.
    refused
        How it failed; empty if it succeeded.
    """

    host: str
    port: int
    refused: str


def listeners(server: Server) -> list[tuple[str, int]]:
    """Return every TCP address at which a learner's processes listen."""
    return [(host, port) for host, port in json.loads(server.run(_LISTENERS, 60))]


def attempts(by: Server, targets: Sequence[tuple[str, int]], address: str = "") -> list[Attempt]:
    """Let a learner connect to each of another's listeners, and return how each try went.

    Parameters
    ----------
    by
        The learner who tries. Where this one listens, too, at the same address and port, nothing is tried: the networks differ.
    targets
        Where the other one listens.
    address
        The other one's address in the class's network. Each port is tried there, too.
    """
    own = set(listeners(by))
    everywhere = [*targets, *((address, port) for _, port in targets if address)]
    tried = [target for target in dict.fromkeys(everywhere) if target not in own]
    answers = json.loads(by.run(_CONNECT.format(targets=json.dumps(tried)), 60 + 3 * len(tried)))
    return [Attempt(host, port, refused) for (host, port), refused in zip(tried, answers, strict=True)]
