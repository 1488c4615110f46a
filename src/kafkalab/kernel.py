"""``python -P -m kafkalab.kernel``: the kernel of the course's notebooks.

It is IPython's, but not even while it starts does a file beside the notebook, such as ``types.py``, take the place of one of
Python's own modules. For that Python is told not to look in the present folder (``-P``). IPython then wouldn't either, so that
the notebook couldn't import the learner's own modules. They come after Python's, where IPython would have them.
"""

from __future__ import annotations

import sys


def own_folder_after_pythons(path: list[str]) -> list[str]:
    """Return a path with the present folder (an empty text) before the first folder of installed packages."""
    installed = (place for place, folder in enumerate(path) if folder.endswith(("site-packages", "dist-packages")))
    place = next(installed, len(path))
    return [*path[:place], "", *path[place:]]


if __name__ == "__main__":
    from ipykernel.kernelapp import launch_new_instance

    sys.path = own_folder_after_pythons(sys.path)
    launch_new_instance()
