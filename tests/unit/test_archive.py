"""What a long preparation says while it goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkalab.distribution import ClassDataArchive, archive


def test_a_long_preparation_says_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, java = tmp_path / "gate", tmp_path / "java"
    os.mkfifo(gate)
    java.write_text(
        f'#!/bin/sh\nfor word in "$@"; do case $word in -XX:SharedArchiveFile=*) cat {gate} > "${{word#*=}}";; esac; done\n'
    )
    java.chmod(0o700)
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "java_command", lambda: java)
    monkeypatch.setattr(archive, "java_identity", lambda _: "a java that waits")
    monkeypatch.setattr(archive, "_SIGN_OF_LIFE", 0.01)
    told: list[str] = []

    def report(what: str, done: int, total: int) -> None:
        told.append(what)
        if len(told) == 3:  # it has said twice that it goes on
            gate.write_text("classes")

    made = ClassDataArchive("registry", "some jars", "registry")
    made.make("no classes", report)
    assert made.is_whole(thoroughly=True)
    assert told[0].startswith("preparing registry for quick starts") and "a minute or two" in told[0]
    assert [line.split(":")[0] for line in told[1:3]] == ["still preparing registry"] * 2
    assert told[-1] == "registry is prepared"
