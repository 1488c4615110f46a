"""A rough map of the American Midwest. It shows where trucks are, and needs no network."""

from __future__ import annotations

__all__ = ["BORDERS", "CITIES", "EAST", "LAKE", "NORTH", "RIVERS", "SOUTH", "STATES", "WEST"]

WEST, EAST, SOUTH, NORTH = -95.7, -86.7, 38.0, 42.7
"""The part that is shown, in degrees."""

Line = tuple[tuple[float, float], ...]
"""Points by longitude and latitude."""

RIVERS: tuple[Line, ...] = (
    # the Mississippi, from north to south
    (
        (-91.22, 43.5), (-91.10, 42.7), (-90.64, 42.5), (-90.15, 42.1), (-90.18, 41.8), (-90.60, 41.5), (-91.05, 41.25),
        (-91.10, 40.8), (-91.42, 40.38), (-91.50, 40.0), (-91.20, 39.6), (-90.73, 39.25), (-90.67, 38.93), (-90.12, 38.8),
        (-90.18, 38.63), (-90.35, 38.2), (-89.90, 37.9),
    ),
    # the Missouri, down to the Mississippi
    (
        (-96.45, 42.49), (-96.10, 41.8), (-95.85, 41.2), (-95.77, 40.58), (-95.30, 40.0), (-94.90, 39.75), (-94.61, 39.11),
        (-93.50, 39.25), (-92.70, 38.97), (-92.20, 38.58), (-91.40, 38.7), (-90.12, 38.8),
    ),
)  # fmt: skip

BORDERS: tuple[Line, ...] = (
    ((-95.77, 40.58), (-91.73, 40.61), (-91.42, 40.38)),  # Iowa, Missouri
    ((-94.61, 39.11), (-94.62, 37.0)),  # Kansas, Missouri
    ((-90.64, 42.5), (-87.80, 42.49)),  # Wisconsin, Illinois
    ((-87.53, 41.71), (-87.53, 39.35), (-87.60, 39.1), (-87.50, 38.7), (-87.95, 38.2), (-88.05, 37.8)),  # Illinois, Indiana
    ((-87.21, 41.7), (-84.80, 41.7)),  # Michigan, Indiana
    ((-95.31, 40.0), (-102.0, 40.0)),  # Nebraska, Kansas
)

LAKE: Line = (
    (-87.90, 43.3), (-87.90, 43.0), (-87.80, 42.5), (-87.80, 42.3), (-87.61, 41.85), (-87.40, 41.63), (-87.00, 41.7),
    (-86.60, 42.0), (-86.25, 42.6), (-86.25, 43.3),
)  # fmt: skip
"""Lake Michigan."""

STATES: dict[str, tuple[float, float]] = {
    "IOWA": (-92.9, 42.25),
    "MISSOURI": (-92.9, 40.05),
    "ILLINOIS": (-88.85, 40.55),
}
"""Where the states' names stand."""

CITIES: dict[str, tuple[float, float]] = {
    "Chicago": (-87.63, 41.88),
    "Saint Louis": (-90.20, 38.63),
    "Kansas City": (-94.58, 39.10),
    "Des Moines": (-93.62, 41.59),
    "Springfield": (-89.65, 39.78),
    "Davenport": (-90.58, 41.52),
}
