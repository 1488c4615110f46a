"""The writer schemas of values. Trucks may get new ones while the pipeline runs."""

from __future__ import annotations

import re

from pipeline.events import written_schemas
from pipeline.settings import Settings
from pipeline.transform import UNKNOWN

__all__ = ["Writers"]


class Writers:
    """The schemas that the registry knows for a topic, and the ids that it doesn't know.

    Attributes
    ----------
    schemas
        Schemas of the topic, by their ids.
    foreign
        Ids that values have, and that the registry doesn't know for the topic.
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
            When it is away for too long.
        """
        self.schemas = written_schemas(self._settings.registry, self._settings.positions, self._settings.wait)

    def learn(self, error: Exception) -> bool:
        """If a query ended at an unknown schema, ask the registry. Return whether it ended there.

        Raises
        ------
        ConnectionError
            When the registry is away for too long.
        """
        found = re.search(rf"{UNKNOWN} (\d+)", str(error))
        if found is None:
            return False
        self.ask()
        if (number := int(found[1])) not in self.schemas:
            self.foreign.add(number)
        return True
