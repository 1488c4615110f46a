"""A network namespace for each learner, so that nobody reaches another learner's brokers, Connect workers or registries.

Everything that the course starts listens on 127.0.0.1, and much of it asks nobody for a password. All users of a machine share
that address, unless each has a network namespace: then 127.0.0.1 is the learner's own.

A namespace has one pair of interfaces to the machine. Its routes lead to the hub, and with ``internet`` to other machines, but
never to another learner's namespace. Only root can change these routes.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

__all__ = ["ADDRESSES", "Network", "NetworkError", "Seat"]

ADDRESSES = IPv4Network("10.111.0.0/16")
"""Learners' addresses, unless you choose others."""

_CLOUD_METADATA = "169.254.0.0/16"
_TABLE = "kafkalab"
_NAMESPACES = Path("/run/netns")
_SYSTEMD = Path("/run/systemd/system")
"""It's there on machines that systemd started; see sd_booted(3)."""

# A namespace's file is a mount, and systemd, which starts learners' servers, must see it. The Littlest JupyterHub's service has
# PrivateTmp=, which keeps its mounts from systemd. With ProtectKernelTunables= it can't change the kernel's settings either.
_OUTSIDE_OF_THE_SERVICE = ("nsenter", "--mount=/proc/1/ns/mnt", "--")
_INNER = "eth0"
_ADDRESSES_OF_A_SEAT = 4  # a /30: its own, the machine's, and two that can't be used


class NetworkError(RuntimeError):
    """The machine refused to make a network. The message has the command and what the machine said."""


@dataclass(frozen=True)
class Seat:
    """One learner's network.

    Attributes
    ----------
    namespace
        Its name, as ``ip netns list`` shows it. A user's name may hold anything, so it isn't part of it.
    interface
        The machine's end of the pair of interfaces.
    outer, inner
        The addresses of the machine's end, and of the learner's.
    """

    namespace: str
    interface: str
    outer: IPv4Address
    inner: IPv4Address

    @property
    def path(self) -> Path:
        """The file by which systemd and ``setns`` know the namespace."""
        return _NAMESPACES / self.namespace


@dataclass(frozen=True)
class Network:
    """The networks of a class.

    Parameters
    ----------
    addresses
        Where the learners' addresses come from: four for each. You need another range only if this machine's own network uses
        this one.
    internet
        Whether learners reach other machines, by address translation with ``nft``. The course doesn't need that: everything
        it downloads is in the shared cache.
    state
        A file that knows which learner has which network. It lies in ``/run``, and ends with the namespaces when the machine
        stops.
    """

    addresses: IPv4Network = ADDRESSES
    internet: bool = False
    state: Path = Path("/run/kafkalab-hub/networks.json")

    @property
    def hub(self) -> IPv4Address:
        """The address at which the hub listens for its learners. It's an address of the loopback interface, like 127.0.0.1."""
        return self.addresses[-2]

    @property
    def seats(self) -> int:
        """How many learners can have a network at the same time."""
        return self.addresses.num_addresses // _ADDRESSES_OF_A_SEAT - 1  # the last one holds the hub's address

    def seat(self, number: int) -> Seat:
        """Return one of the networks. The first number is 0."""
        if not 0 <= number < self.seats:
            raise NetworkError(
                f"{self.addresses} has room for {self.seats} learners. Give the class a larger range of addresses."
            )
        first = self.addresses[_ADDRESSES_OF_A_SEAT * number]
        return Seat(f"kafkalab-{number}", f"kafkalab{number}", first + 1, first + 2)

    def prepare(self) -> None:
        """Give the machine the hub's address, and with ``internet`` the rules for it. Do it before the hub listens.

        Raises
        ------
        NetworkError
            If this isn't root, or a program is missing: ``ip``, or with ``internet`` also ``nft`` and ``sysctl``.
        """
        # `replace` finds an address that is there already.
        _run(["ip", "address", "replace", f"{self.hub}/32", "dev", "lo"])
        if self.internet:
            _run(["sysctl", "--quiet", "--write", "net.ipv4.ip_forward=1"])
            _run(["nft", "-f", "-"], self.rules())

    def rules(self) -> str:
        """Return what ``nft`` is given: learners' packets leave with the machine's address, and none passes between them."""
        return f"""\
table ip {_TABLE}
delete table ip {_TABLE}
table ip {_TABLE} {{
  chain forward {{
    type filter hook forward priority filter; policy accept;
    ip saddr {self.addresses} ip daddr {self.addresses} drop
    ip saddr {self.addresses} ip daddr {_CLOUD_METADATA} drop
    ip daddr {self.addresses} ct state != {{ established, related }} drop
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {self.addresses} ip daddr != {self.addresses} masquerade
  }}
}}
"""

    def create(self, learner: str) -> Seat:
        """Make a learner's network and return it. A network that is whole already stays as it is.

        Raises
        ------
        NetworkError
            If the machine refuses, or all networks are taken. Nothing is left behind then.
        """
        with self._taken() as taken:
            number = taken.get(learner)
            if number is None:
                number = min(set(range(len(taken) + 1)) - set(taken.values()))
            seat = self.seat(number)
            if not _is_whole(seat):
                _remove(seat)
                try:
                    self._make(seat)
                except NetworkError:
                    _remove(seat)
                    raise
            taken[learner] = number
        return seat

    def remove(self, learner: str) -> None:
        """Remove a learner's network, if there is one. What still runs in it can't be reached any more."""
        with self._taken() as taken:
            if (number := taken.pop(learner, None)) is not None:
                _remove(self.seat(number))

    def _make(self, seat: Seat) -> None:
        _run(["ip", "netns", "add", seat.namespace])
        _run(["ip", "-batch", "-"], _lines(
            f"link add {seat.interface} type veth peer name {_INNER} netns {seat.namespace}",
            f"address add {seat.outer}/30 dev {seat.interface}",
            f"link set {seat.interface} up",
        ))  # fmt: skip
        _run(["ip", "-n", seat.namespace, "-batch", "-"], _lines(
            "link set lo up",
            f"address add {seat.inner}/30 dev {_INNER}",
            f"link set {_INNER} up",
            *self.routes(seat),
        ))  # fmt: skip

    def routes(self, seat: Seat) -> list[str]:
        """Return what ``ip`` is told about where packets from a learner may go."""
        return [
            f"route add {self.hub}/32 via {seat.outer}",
            f"route add prohibit {self.addresses}",
            *([f"route add prohibit {_CLOUD_METADATA}", f"route add default via {seat.outer}"] if self.internet else []),
        ]

    @contextmanager
    def _taken(self) -> Iterator[dict[str, int]]:
        """The numbers of the learners' networks, to be changed. Others wait meanwhile."""
        self.state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.state.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            taken: dict[str, int] = json.loads(file.read() or "{}")
            yield taken
            file.truncate(0)
            file.write(json.dumps(taken))


def _is_whole(seat: Seat) -> bool:
    """Whether the namespace has its address. That's given before the routes, so what fails there is removed by `create`."""
    if not seat.path.exists():
        return False
    shown = _try(["ip", "-n", seat.namespace, "-brief", "address", "show", "dev", _INNER, "up"])
    return f" {seat.inner}/" in shown.stdout


def _remove(seat: Seat) -> None:
    if seat.path.exists():
        _run(["ip", "netns", "delete", seat.namespace])
    # A namespace in which something still runs keeps its interface. Removing the machine's end removes both.
    _try(["ip", "link", "delete", seat.interface])


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _run(command: Sequence[str], given: str = "") -> None:
    done = _try(command, given)
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")


def _try(command: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command as the machine's root, not as a service's, and return how it went."""
    if shutil.which(command[0]) is None:
        package = {"ip": "iproute2", "nft": "nftables", "sysctl": "procps"}[command[0]]
        raise NetworkError(f"{command[0]} isn't installed. On Debian and Ubuntu: apt-get install {package}")
    outside = _OUTSIDE_OF_THE_SERVICE if _SYSTEMD.is_dir() else ()
    return subprocess.run([*outside, *command], input=given, capture_output=True, text=True)
