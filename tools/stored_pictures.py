"""Write the pictures in docs/ that chapters have stored and docs/use/pictures.md shows: the log microscope and the dashboard.

KAFKALAB_CHROMIUM names the browser that draws them.
"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
# The picture, its chapter, and the cell that shows it.
PICTURES = (
    ("log-microscope.png", "05_log_and_replication", "tx-eye"),
    ("dashboard.png", "11_spark_pipeline", "stream-dashboard"),
)
WIDTH = 900  # pixels
PAGE = '<body style="margin: 0"><main style="padding: 4px; width: fit-content">{}</main></body>'


def stored_picture(chapter: str, cell_id: str) -> str:
    """Take a picture out of a chapter, as HTML."""
    notebook = nbformat.read(ROOT / f"notebooks/{chapter}.ipynb", 4)
    [cell] = [cell for cell in notebook.cells if cell.id == cell_id]
    [picture] = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
    return str(picture)


def main() -> None:
    """Write all of them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["KAFKALAB_CHROMIUM"], args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 600}, device_scale_factor=2)
        for name, chapter, cell_id in PICTURES:
            page.set_content(PAGE.format(stored_picture(chapter, cell_id)))
            page.locator("main").screenshot(path=ROOT / "docs" / name)
        browser.close()


if __name__ == "__main__":
    main()
