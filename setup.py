"""Puts the course's notebooks into the wheel; everything else stands in pyproject.toml."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithCourse(build_py):
    """Copy the course into the package. An editable install doesn't: it finds the notebooks in the clone."""

    def run(self) -> None:
        """Build the package, with the course in it."""
        super().run()
        if self.editable_mode:
            return
        sys.path.insert(0, str(ROOT / "src"))
        from kafkalab.course.content import Content

        content = Content(ROOT)
        target = Path(self.build_lib, "kafkacourse/content")
        shutil.rmtree(target, ignore_errors=True)  # an earlier build may have left what is no longer in the course
        for name, path in (content.files() | content.solutions()).items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)


setup(cmdclass={"build_py": BuildWithCourse})
