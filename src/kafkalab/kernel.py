"""``python -P -m kafkalab.kernel``: the kernel of the course's notebooks.

It's IPython's kernel, but a file beside the notebook, such as ``types.py``, never hides one of Python's own modules, not even
while the kernel starts. With ``-P`` Python doesn't look in the current folder. The learner's own modules must still be
importable, so this module adds the folder after Python's own.
"""

from __future__ import annotations

import sys


def own_folder_after_pythons(path: list[str]) -> list[str]:
    """Return an import path with the current folder (an empty text) before the first folder of installed packages."""
    installed = (place for place, folder in enumerate(path) if folder.endswith(("site-packages", "dist-packages")))
    place = next(installed, len(path))
    return [*path[:place], "", *path[place:]]


if __name__ == "__main__":
    from ipykernel.kernelapp import launch_new_instance

    sys.path = own_folder_after_pythons(sys.path)
    launch_new_instance()
