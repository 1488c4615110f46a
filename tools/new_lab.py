"""Begin a lab: ``make new-lab CHAPTER=02_cluster_failover STEM=leaders``.

Writes what belongs to a lab, each in its place, and links the lab from its chapter:

- its solution, with a lab card, a prediction and a check
- the module with the check
- the check's test, with a wrong answer and a right one

Then it runs the solution, stores its outputs, and writes the learner's version. All of that passes the tests, so you can
go on from something that works. `CONTRIBUTING.md` says how.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from string import Template

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import link_notebooks
import make_labs

ROOT = Path(__file__).parent.parent

HEAD = """\
# Create $topic, and count its replicas

**What you'll do.** Create a topic and count its replicas.

**What you'll learn.** How partitions and replicas multiply.

Cells with `# YOUR CODE HERE` are yours. Stuck? The lab card has hints, and so has `hint("$id")` in a new cell."""

START = """\
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, LabCard, Predict, check, hint

cluster = Cluster(brokers=3).start()
admin = AdminClient(cluster.client_config())"""

PREDICT = """\
replicas_of_$name = Predict("$topic has two partitions and a replication factor of three. How many replicas in all?", id="$id-replicas", options=[
    "two", "three", "five", "six",
])
replicas_of_$name"""

DO = """\
replicas = None
### BEGIN SOLUTION
topic = NewTopic("$topic", num_partitions=2, replication_factor=3)
admin.create_topics([topic])["$topic"].result()
view = cluster.wait_for(
    lambda view: view.in_sync("$topic") and view, "all replicas in sync"
)
partitions = view.topics["$topic"]
replicas = sum(len(partition.replicas) for partition in partitions)
### END SOLUTION
print("replicas:", replicas)"""

EXPLAIN = '''\
replicas_of_$name.explain("""
Each partition has as many replicas as the replication factor says, and each replica is a log of its own on a broker's disk.
""", answer="six")'''

BACK = """\
**What you saw.** Two partitions with three replicas each are six logs.

**On your own.** Add a partition. Where do its replicas go?

**Further reading.** [Replication](https://kafka.apache.org/documentation/#replication) in Kafka's documentation."""

CHECK = '''\
"""A topic, and the number of its replicas."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import has_shape

__all__ = ["lab"]

TOPIC = "$topic"
PARTITIONS, COPIES = 2, 3

lab = Lab("$id")

check = lab.add_check(
    "$id",
    "Create a topic, and count its replicas",
    hints=(
        "AdminClient.create_topics takes a list of NewTopic.",
        "cluster.describe().topics[name] lists the partitions. Each has its replicas.",
    ),
)

is_shaped = check.requires(f"{TOPIC} has {PARTITIONS} partitions with {COPIES} replicas each")(
    has_shape(TOPIC, PARTITIONS, COPIES)
)


@check.requires("You know how many replicas there are", after=is_shaped)
def replicas_are_counted(ctx: CheckContext) -> None:
    if (replicas := ctx.answer("replicas", int, "the number of replicas")) != PARTITIONS * COPIES:
        raise Unmet(f"There aren't {replicas} replicas. How many does each partition have?")
'''

TEST = '''\
"""A topic, and the number of its replicas: a wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import pytest

from kafkalab import Cluster
from support import Verdict, create

pytestmark = pytest.mark.cluster

LAB, TOPIC = "$id", "$topic"


def test_a_wrong_number_and_the_right_one(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 2, 3)
    verdict.says("There aren't 2 replicas", LAB, clean, replicas=2)
    verdict.passes(LAB, clean, replicas=6)
    verdict.passes(LAB, clean, replicas="6")


def test_a_topic_of_another_shape(clean: Cluster, verdict: Verdict) -> None:
    create(clean, TOPIC, 1, 3)
    verdict.says("partition", LAB, clean, replicas=3)
'''


def chapter_of(text: str) -> Path:
    """The notebook of a chapter, by its name or its number."""
    chapters = sorted((ROOT / "notebooks").glob("*.ipynb"))
    for path in chapters:
        if text in (path.stem, path.stem[:2], path.stem[:2].lstrip("0")):
            return path
    sys.exit(f"new-lab: there is no chapter {text!r}; there are {', '.join(path.stem for path in chapters)}")


def stem_of(text: str, chapter: Path) -> str:
    """The name of the lab's module. The lab's own name has the chapter's number before it."""
    name = text.removeprefix(chapter.stem[:3])
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        sys.exit(f"new-lab: {text!r} is no name for a lab; use small letters, digits and _, such as leaders")
    if taken := [*(ROOT / "solutions").glob(f"*/{chapter.stem[:3]}{name}.ipynb")]:
        sys.exit(f"new-lab: there is a lab of that name: {taken[0].relative_to(ROOT)}")
    return name


def link_from(chapter: Path, lab: str) -> None:
    """Add the lab to the list at its chapter's end, behind the last one there."""
    notebook = json.loads(chapter.read_text(encoding="utf-8"))
    link = re.compile(rf"( *- )\[.*\]\(\.\./labs/{chapter.stem}/\w+\.ipynb\)")
    for cell in reversed(notebook["cells"]):
        lines = "".join(cell["source"]).split("\n")
        if places := [number for number, line in enumerate(lines) if link.match(line)]:
            place = places[-1]
            bullet = link.match(lines[place])[1]
            lines.insert(place + 1, f"{bullet}[{lab}](../labs/{chapter.stem}/{lab}.ipynb)")
            cell["source"] = "\n".join(lines).splitlines(keepends=True)
            chapter.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            return
    sys.exit(f"new-lab: {chapter.name} lists no labs")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"written: {path.relative_to(ROOT)}")


def main() -> int:
    """Write the lab's files, run its solution, and write the learner's version."""
    parser = argparse.ArgumentParser(prog="new-lab", description="Begin a lab of the course.")
    parser.add_argument("chapter", help="a chapter's name or number: 02_cluster_failover, or 2")
    parser.add_argument("stem", help="the lab's name without the chapter's number: leaders")
    arguments = parser.parse_args()
    chapter = chapter_of(arguments.chapter)
    name = stem_of(arguments.stem, chapter)
    lab, folder = f"{chapter.stem[:2]}_{name}", f"ch{chapter.stem}"
    words = {"id": lab, "name": name, "topic": name.replace("_", "-")}

    def filled(text: str) -> str:
        return Template(text).substitute(words)

    solution = ROOT / f"solutions/{chapter.stem}/{lab}.ipynb"
    check = f'check("{lab}", cluster, replicas=replicas)'
    cells = [
        new_markdown_cell(filled(HEAD), id=f"{name}-front"),
        new_code_cell(START, id=f"{name}-start"),
        new_code_cell(f'LabCard("{lab}")', id=f"{name}-card"),
        new_markdown_cell("## 1 · Create the topic", id=f"{name}-1"),
        new_code_cell(filled(PREDICT), id=f"{name}-predict", metadata={"jupyter": {"source_hidden": True}}),
        new_markdown_cell(
            filled("**Do.** Create `$topic`, and put the number of its replicas into `replicas`."), id=f"{name}-text"
        ),
        new_code_cell(filled(DO), id=f"{name}-do"),
        new_code_cell(filled(EXPLAIN), id=f"{name}-explain", metadata={"jupyter": {"source_hidden": True}}),
        new_markdown_cell("## Check", id=f"{name}-check-text"),
        new_code_cell(check, id=f"{name}-check"),
        new_markdown_cell(BACK, id=f"{name}-back"),
        new_code_cell("cluster.stop()", id=f"{name}-stop"),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    facts = {"difficulty": "easy", "minutes": 10, "needs": f"chapter {chapter.stem[:2]}"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel, "kafkalab": facts})
    link_from(chapter, lab)
    write(solution, nbformat.writes(notebook) + "\n")
    write(ROOT / f"src/kafkacourse/{folder}/{name}.py", filled(CHECK))
    write(ROOT / f"tests/labs/{folder}/test_{name}.py", filled(TEST))
    link_notebooks.main(check=False)
    make_labs.main(check=False)  # the card reads what the lab needs from the learner's version
    run = [str(Path(sys.executable).with_name("kafkalab")), "run", "--backend", "local", "--save", str(solution)]
    status = subprocess.run(run).returncode
    make_labs.main(check=False)  # now it says how long the cells run
    return status


if __name__ == "__main__":
    sys.exit(main())
