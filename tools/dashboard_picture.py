"""Write docs/dashboard.svg, which the README shows: the dashboard as chapter 11 stored it."""

from __future__ import annotations

from pathlib import Path

import nbformat

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Take the picture out of the notebook."""
    chapter = nbformat.read(ROOT / "notebooks/11_spark_pipeline.ipynb", 4)
    [cell] = [cell for cell in chapter.cells if cell.id == "stream-dashboard"]
    [picture] = [output.data["image/svg+xml"] for output in cell.outputs if "image/svg+xml" in output.get("data", {})]
    (ROOT / "docs/dashboard.svg").write_text(picture + "\n")


if __name__ == "__main__":
    main()
