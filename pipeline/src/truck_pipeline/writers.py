"""The writer schemas of a topic. Trucks may get new ones while the pipeline runs."""

from __future__ import annotations

import re

from truck_pipeline.events import written_schemas
from truck_pipeline.settings import Settings
from truck_pipeline.transform import UNKNOWN

__all__ = ["Writers"]


class Writers:
    """The writer schemas of the topic of positions.

    Attributes
    ----------
    schemas
        Schemas by registry id.
    foreign
        Schema ids in values that the registry doesn't know for the topic.
    """

    def __init__(self, settings: Settings) -> None:
        self.schemas: dict[int, str] = {}
        self.foreign: set[int] = set()
        self._settings = settings

    def ask(self) -> None:
        """Ask the registry for the topic's schemas.

        Raises
        ------
        ConnectionError
            When the registry is away for too long.
        """
        self.schemas = written_schemas(self._settings.registry, self._settings.positions, self._settings.wait)

    def learn(self, error: Exception) -> bool:
        """Ask the registry if a query ended at an unknown schema. Return whether it did.

        Raises
        ------
        ConnectionError
            When the registry is away for too long.
        """
        unknown = re.search(rf"{UNKNOWN} (\d+)", str(error))
        if unknown is None:
            return False
        self.ask()
        if (number := int(unknown[1])) not in self.schemas:
            self.foreign.add(number)
        return True
