"""A class-data archive serves every clone on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kafkalab.distribution.archive import classpath, kafka_archive
from kafkalab.distribution.jars import ensure_jars
from kafkalab.distribution.java import java_command


@pytest.mark.cluster
def test_an_archive_is_taken_under_another_folder_and_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole point: what one clone made, Java takes for the other clone's jars."""
    options = kafka_archive().options(classpath())
    assert options, "kafkalab fetch makes it"
    other = tmp_path / "java"
    shutil.copytree(java_command().parent.parent, other)
    links = [tmp_path / "jars" / jar.name for jar in ensure_jars("kafka")]
    links[0].parent.mkdir()
    for link, jar in zip(links, ensure_jars("kafka"), strict=True):
        link.symlink_to(jar)
    command = [str(other / "bin/java"), *options, "-Xshare:on", "-Xlog:class+load", "-cp", os.pathsep.join(map(str, links))]
    done = subprocess.run(
        [*command, "org.apache.kafka.tools.TopicCommand", "--help"], check=False, capture_output=True, text=True
    )
    assert "org.apache.kafka.tools.TopicCommand source: shared objects file" in done.stdout, (
        done.stdout[:500] + done.stderr[:500]
    )
