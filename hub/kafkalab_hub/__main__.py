"""``kafkalab-hub``: what whoever runs the class's hub does before the class."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic

from kafkalab_hub.client import Hub, HubError
from kafkalab_hub.configuration import ClassHub, link
from kafkalab_hub.isolation import attempts, listeners
from kafkalab_hub.measure import measure, table

__all__ = ["main"]

TOKEN = "JUPYTERHUB_API_TOKEN"
_CHAPTER = "notebooks/02_cluster_failover.ipynb"
_CHAPTER_SECONDS = 1800.0
_LAB_SECONDS = 300.0
_START_A_LAB = (
    "from kafkalab import Cluster, ConnectCluster\ncluster = Cluster(brokers=3).start()\nConnectCluster(cluster).start()\n"
)

_DESCRIPTION = f"""\
warm      start all learners' servers before they come
verify    let one learner try every port of another
measure   let all learners run a chapter at once, and print times and memory
links     print an address for each chapter, to hand out

Except for links, the variable {TOKEN} holds an administrator's token: the hub's page /hub/token makes one.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status: 1 if something isn't as it should be."""
    parser = argparse.ArgumentParser("kafkalab-hub", description=_DESCRIPTION, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=["warm", "verify", "measure", "links"])
    parser.add_argument("hub", help="the hub's address, such as https://hub.example.org")
    parser.add_argument("learners", nargs="*", metavar="LEARNER", help="names of users; verify takes two")
    parser.add_argument("--chapter", default=_CHAPTER, help=f"what measure runs; by default {_CHAPTER}")
    parser.add_argument("--course", type=Path, default=ClassHub.course, help=f"the clone; by default {ClassHub.course}")
    given = parser.parse_args(arguments)
    if given.command == "links":
        return _links(given.hub, given.course)
    if len(given.learners) < (2 if given.command == "verify" else 1):
        parser.error(f"{given.command} needs {'two learners' if given.command == 'verify' else 'the names of learners'}")
    if not (token := os.environ.get(TOKEN)):
        parser.error(f"{TOKEN} isn't set: make a token on the page {given.hub.rstrip('/')}/hub/token, and export it")
    hub = Hub(given.hub, token)
    commands: dict[str, Callable[[], int]] = {
        "warm": partial(_warm, hub, given.learners),
        "verify": partial(_verify, hub, *given.learners[:2]),
        "measure": partial(_measure, hub, given.learners, given.chapter),
    }
    try:
        return commands[given.command]()
    except HubError as error:
        print(error, file=sys.stderr)
        return 1


def _warm(hub: Hub, learners: Sequence[str]) -> int:
    """Start all servers at once. One that doesn't start keeps no other from it."""
    began = monotonic()

    def start(learner: str) -> str:
        try:
            hub.start(learner)
        except HubError as error:
            return f"✗ {learner}: {error}"
        return f"✓ {learner} after {monotonic() - began:.0f} s"

    with ThreadPoolExecutor(len(learners)) as pool:
        lines = list(pool.map(start, learners))
    print("\n".join(lines))
    return int(any(line.startswith("✗") for line in lines))


def _verify(hub: Hub, learner: str, neighbour: str) -> int:
    """Run a cluster with Connect as one learner, and try all its ports as another."""
    one, other = hub.start(learner), hub.start(neighbour)
    with one.kernel() as kernel:
        kernel.run(_START_A_LAB, _LAB_SECONDS)
        open_ports = listeners(one)
        address = next((host for host, _ in open_ports if not host.startswith("127.")), "")
        tried = attempts(other, open_ports, address)
    reached = [f"{attempt.host}:{attempt.port}" for attempt in tried if not attempt.refused]
    if reached:
        print(f"✗ {neighbour} reaches {len(reached)} of {learner}'s ports: {', '.join(reached)}")
        return 1
    print(f"✓ {learner} listens at {len(open_ports)} addresses. {neighbour} tried {len(tried)} and reached none.")
    return 0


def _measure(hub: Hub, learners: Sequence[str], chapter: str) -> int:
    rows = measure(hub, learners, chapter, _CHAPTER_SECONDS)
    print(table(rows))
    print(f"\nAll together: {sum(row.peak for row in rows) / 1e9:.1f} GB at most.")
    return int(any(row.failure for row in rows))


def _links(address: str, course: Path) -> int:
    chapters = sorted(course.glob("notebooks/*.ipynb"))
    if not chapters:
        print(f"there are no chapters in {course}: --course names the clone of the course", file=sys.stderr)
        return 1
    for chapter in chapters:
        print(f"- [{chapter.stem}]({link(address, chapter.relative_to(course).as_posix())})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
