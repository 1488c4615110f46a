"""A topic's files: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kafkalab import Cluster
from support import Verdict, create, send

pytestmark = pytest.mark.cluster

LAB, TOPIC = "01_log_files", "readings"
FILES = [f"{offset:020}.log" for offset in (0, 3, 6, 9)]
RIGHT = {"files": FILES, "holder": FILES[1], "dumped": 10}
MIB = "1048576"


def readings(cluster: Cluster, values: int = 10, **config: str) -> None:
    create(cluster, TOPIC, 1, 1, **config)
    send(cluster, TOPIC, [f"reading {n}:".ljust(300_000, ".") for n in range(values)])


def test_right_and_right_but_for_one_answer(single: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, single, files=[], holder=None, dumped=None)
    assert "There is no topic 'readings' yet" in said and "0 of 6" in said
    readings(single, segment_bytes=MIB)
    verdict.passes(LAB, single, **RIGHT)
    verdict.passes(LAB, single, files=tuple(reversed(FILES)), holder=FILES[1], dumped=np.int64(10))
    in_folder = [Path("data") / "readings-0" / name for name in FILES]
    verdict.passes(LAB, single, files=in_folder, holder=str(in_folder[1]), dumped=10)

    def refused(sentence: str, **wrong: object) -> None:
        verdict.says(sentence, LAB, single, **{**RIGHT, **wrong})

    refused("`files` is empty", files=[])
    refused("Each item of `files` should be text or a path, not a whole number (one is 0)", files=[0, 3, 6, 9])
    refused("doesn't hold records", files=[*FILES, "00000000000000000000.index"])
    refused("padded with zeros to 20 digits", files=[f"{offset:017}.log" for offset in (0, 3, 6, 9)])
    refused("You name 1 file, but the folder has 4", files=FILES[:1])
    refused("`holder` is still None", holder=None)
    refused("isn't one of the .log files", holder="readings-0")
    refused("Which of its records gives a file its name?", holder=FILES[2])
    refused("`dumped` is still None", dumped=None)
    refused("It isn't 3", dumped=3)  # one file only
    refused("It isn't 20", dumped=20)  # batches counted, too


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (readings, "A segment of readings may have 1,073,741,824 bytes"),
        (lambda cluster: readings(cluster, 9, segment_bytes=MIB), "'reading 9:"),
        (lambda cluster: create(cluster, TOPIC, 3, 1, segment_bytes=MIB), "readings has 3 partitions"),
    ],
    ids=["large_segments", "one_missing", "three_partitions"],
)
def test_wrong(single: Cluster, verdict: Verdict, build: Callable[[Cluster], None], sentence: str) -> None:
    build(single)
    _, said = verdict(LAB, single, **RIGHT)
    assert sentence in said
    assert max(map(len, said.splitlines())) < 300, "a reading is printed whole"
