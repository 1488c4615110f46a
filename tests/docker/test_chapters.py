"""Chapters on Docker show what they show on local processes: those whose subject depends most on what a broker runs on.

``make test-all`` runs every chapter and every solution there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAPTERS = [
    "02_cluster_failover",
    *[pytest.param(stem, marks=pytest.mark.at_length) for stem in ("04_consumer", "07_security")],
]


@pytest.mark.docker
@pytest.mark.timeout(600)
@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_chapter_on_docker(stem: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", f"notebooks/{stem}.ipynb"],
        cwd=ROOT, env={**os.environ, "KAFKALAB_BACKEND": "docker"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
