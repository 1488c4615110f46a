"""Write the pictures in docs/ that chapters have stored and README shows: the log microscope and the dashboard."""

from __future__ import annotations

from pathlib import Path

import nbformat

ROOT = Path(__file__).parent.parent
# The picture, its chapter, and the cell that shows it.
PICTURES = (
    ("log-microscope.svg", "05_log_and_replication", "tx-eye"),
    ("dashboard.svg", "11_spark_pipeline", "stream-dashboard"),
)


def stored_picture(chapter: str, cell_id: str) -> str:
    """Take a picture out of a chapter."""
    notebook = nbformat.read(ROOT / f"notebooks/{chapter}.ipynb", 4)
    [cell] = [cell for cell in notebook.cells if cell.id == cell_id]
    [picture] = [output.data["image/svg+xml"] for output in cell.outputs if "image/svg+xml" in output.get("data", {})]
    return str(picture)


def main() -> None:
    """Write all of them."""
    for name, chapter, cell_id in PICTURES:
        (ROOT / "docs" / name).write_text(stored_picture(chapter, cell_id) + "\n")


if __name__ == "__main__":
    main()
