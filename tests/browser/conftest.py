"""What tests in a browser share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from support import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)  # milliseconds


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, without a profile."""
    executable = os.environ.get("KAFKALAB_CHROMIUM") or shutil.which("chromium")
    if not executable:
        pytest.skip("there is no Chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
