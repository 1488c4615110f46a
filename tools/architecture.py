"""Draws the picture of `docs/architecture.md`: rooms, and which imports from which.

``python tools/architecture.py`` writes it anew. A room is a package of the engine, all modules directly in the engine, the
course, or the pipeline. An arrow that follows from others isn't drawn: if the course imports from a room that imports from
`cluster`, it may import from `cluster` itself, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import grimp

PAGE = Path(__file__).parent.parent / "docs/architecture.md"
PACKAGES = ("kafkalab", "kafkacourse", "truck_pipeline")
FOUNDATION = "foundation"
PICTURE = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)

Rooms = dict[str, set[str]]


def room_of(module: str, packages: set[str]) -> str:
    """The room that a module is in."""
    root, *rest = module.split(".")
    if root != "kafkalab":
        return root
    return rest[0] if rest and f"kafkalab.{rest[0]}" in packages else FOUNDATION


def imports() -> Rooms:
    """What each room imports from, by the import statements of its modules."""
    graph = grimp.build_graph(*PACKAGES)
    packages = {module for module in graph.modules if graph.find_children(module)}
    rooms: Rooms = defaultdict(set)
    for module in graph.modules:
        room = room_of(module, packages)
        rooms[room] |= {room_of(other, packages) for other in graph.find_modules_directly_imported_by(module)} - {room}
    return rooms


def reaches(rooms: Rooms, start: str) -> set[str]:
    """All rooms that a room imports from, directly or by way of others."""
    found: set[str] = set()
    left = [start]
    while left:
        for room in rooms[left.pop()] - found:
            found.add(room)
            left.append(room)
    return found


def needed(rooms: Rooms) -> Rooms:
    """The arrows that don't follow from others."""
    return {
        room: {other for other in others if not any(other in reaches(rooms, via) for via in others - {other})}
        for room, others in rooms.items()
    }


def picture(rooms: Rooms) -> str:
    """The picture, in Mermaid's words."""
    arrows = [f"    {room} --> {other}" for room, others in sorted(needed(rooms).items()) for other in sorted(others)]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, "```", ""])


def main() -> None:
    """Write the picture into its page."""
    PAGE.write_text(PICTURE.sub(lambda _: picture(imports()), PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
