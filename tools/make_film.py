"""``make film``: film a failover in JupyterLab for README, docs/failover.gif, and its last picture, docs/failover.png.

The cluster, the kernel and the browser are real, and so is everything that they show. Only the pace is edited: where
nothing changes on the screen, the film waits for at most `LONGEST_STILL` ms; what still takes longer than `LENGTH` ms plays faster;
and the last picture stands for `LAST` ms, for those who read it.

KAFKALAB_CHROMIUM names the browser.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

from kafkalab.waiting import wait_until

ROOT = Path(__file__).parent.parent
FILM = ROOT / "docs/failover.gif"
STILL = ROOT / "docs/failover.png"
WIDTH = 840  # pixels: GitHub shows a README about that wide
VIEWPORT: ViewportSize = {"width": WIDTH + 68, "height": 700}  # with JupyterLab's bars, which the film leaves out
LARGEST = 2 << 20  # bytes
FRAME_MILLISECONDS = 200
LONGEST_STILL = 800  # milliseconds
LENGTH = 18_000  # milliseconds, without the last picture
LAST = 4000  # milliseconds
SAMPLES = 8  # pictures whose colours the film has
PATIENCE = 600  # seconds

# What the notebook runs, and what the screen shows once that has happened.
SCENES = (
    (
        """from kafkalab import Cluster, ClusterMap, LedgerProducer, judge, spark_session

cluster = Cluster(brokers=3).start()
ClusterMap(cluster, topics="orders")""",
        "3 of 3 nodes up",
    ),
    (
        """!kafka-topics.sh --bootstrap-server {cluster.bootstrap_servers} \\
    --create --topic orders --partitions 5 --replication-factor 3
producer = LedgerProducer(cluster, "orders", rate=100, enable_idempotence=True)
producer.wait_for(300)""",
        "",
    ),
    (
        """cluster.kill(0)
cluster.wait_for(lambda view: view.moved_from("orders", 0), "other leaders")""",
        "moved to broker",
    ),
    (
        """cluster.restart(0)
cluster.wait_for(lambda view: view.in_sync("orders"), "all replicas in sync")""",
        "broker 0 is up after",
    ),
    (
        """producer.stop()
log = (spark_session(cluster).read.format("kafka")
       .option("kafka.bootstrap.servers", cluster.bootstrap_servers)
       .option("subscribe", "orders").load()
       .selectExpr("topic", "partition", "offset", "CAST(value AS STRING)"))
print(judge(sent=producer, log=log.collect()))""",
        "No anomaly",
    ),
)
SETTINGS = {
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": '{"fetchNews": "false", "checkForUpdates": false}',
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": '{"windowingMode": "none"}',
}

Shot = tuple[float, Image.Image]  # seconds, and what was to be seen then


def main() -> None:
    """Write the film and the still."""
    with tempfile.TemporaryDirectory() as folder, _jupyterlab(Path(folder)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["KAFKALAB_CHROMIUM"], args=["--no-sandbox"])
        page = browser.new_page(viewport=VIEWPORT)
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(address)
        shots = list(_play(page))
        browser.close()
    write_film(shots, FILM)
    shots[-1][1].save(STILL, optimize=True)
    print(f"{FILM.relative_to(ROOT)} has {FILM.stat().st_size:,} bytes.")


@contextmanager
def _jupyterlab(folder: Path) -> Iterator[str]:
    """Start JupyterLab on a workspace with the film's notebook, and yield its address. End it afterwards."""
    for name, text in SETTINGS.items():
        path = folder / "settings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    cells = [nbformat.v4.new_code_cell(source) for source, _ in SCENES]
    kernel = {"name": "python3", "display_name": "Python 3"}  # otherwise JupyterLab asks
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    (folder / "work").mkdir()
    nbformat.write(notebook, folder / "work/failover.ipynb")
    environment = {
        **os.environ,
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "layouts"),
        "JUPYTER_ALLOW_ROOT": "1",
        "KAFKALAB_BACKEND": "local",
        "KAFKALAB_PROGRESS": str(folder / "progress"),
    }
    log = folder / "log"
    command = [sys.executable, "-m", "kafkalab.cli", "lab", "--no-browser", "--workspace", str(folder / "work")]
    with log.open("w") as output:
        lab = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        address = r"(http://127\.0\.0\.1:\d+)/\S+token=(\w+)"
        found = wait_until(lambda: re.findall(address, log.read_text()), PATIENCE, "JupyterLab", last_seen=log.read_text)
        server, token = found[0]
        yield f"{server}/lab/workspaces/film/tree/failover.ipynb?token={token}"
    finally:
        lab.terminate()
        lab.wait(PATIENCE)


def _play(page: Page) -> Iterator[Shot]:
    """Run the scenes one after the other, and yield what the screen shows meanwhile."""
    status = page.locator("#jp-main-statusbar")
    wait_until(lambda: "| Idle" in (status.text_content() or ""), PATIENCE, "the kernel", last_seen=status.text_content)
    page.get_by_role("button", name="Cluster", exact=True).click()
    for number, (_, seen) in enumerate(SCENES):
        cell = page.locator(".jp-CodeCell").nth(number)
        cell.locator(".cm-content").click()
        yield _shot(page)
        page.keyboard.press("Shift+Enter")
        cell.evaluate("cell => cell.scrollIntoView()")
        prompt = cell.locator(".jp-InputPrompt")
        until = time.monotonic() + PATIENCE
        while not re.match(r"\[\d+\]:", prompt.text_content() or "") or seen not in page.locator("#main").inner_text():
            yield _shot(page)
            failed = cell.locator("[data-mime-type='application/vnd.jupyter.stderr']").count()
            if failed or time.monotonic() > until:
                raise RuntimeError(f"scene {number} fails or doesn't end. A busy machine? {page.locator('#main').inner_text()}")
        for _ in range(8):
            yield _shot(page)


def _shot(page: Page) -> Shot:
    page.wait_for_timeout(FRAME_MILLISECONDS / 2)  # the film's pace: nothing waits for it
    stage = page.locator("#jp-main-dock-panel")
    return time.monotonic(), Image.open(io.BytesIO(stage.screenshot())).convert("RGB")


def write_film(shots: Sequence[Shot], target: Path) -> None:
    """Write an animation that plays for ever and shows each picture as long as it stood, up to `LONGEST_STILL` and in `LENGTH`.

    Raises
    ------
    ValueError
        If it's larger than 2 MB: nobody waits for that.
    """
    frames: list[Image.Image] = []
    durations: list[int] = []
    began = 0.0
    for at, image in shots:
        if frames and image.tobytes() == frames[-1].tobytes():
            continue
        if frames:
            durations.append(min(round((at - began) * 1000), LONGEST_STILL))
        frames.append(image)
        began = at
    pace = min(1, LENGTH / max(sum(durations), 1))
    durations = [round(duration * pace) for duration in durations] + [LAST]
    # One palette for all: colours that differ from picture to picture would flicker, and take room.
    some = [frames[round(place * (len(frames) - 1) / (SAMPLES - 1))] for place in range(SAMPLES)]
    sample = Image.new("RGB", (frames[0].width, frames[0].height * SAMPLES))
    for place, frame in enumerate(some):
        sample.paste(frame, (0, place * frame.height))
    palette = sample.quantize(255, Image.Quantize.MAXCOVERAGE)
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    first.save(target, save_all=True, append_images=others, duration=durations, loop=0)
    if (size := target.stat().st_size) > LARGEST:
        raise ValueError(f"{target.name} has {size:,} bytes, more than {LARGEST:,}. Show fewer pictures, or smaller ones.")


if __name__ == "__main__":
    main()
