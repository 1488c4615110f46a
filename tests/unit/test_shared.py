"""What clones share in the cache: made by one, kept while used, swept when not."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kafkalab.distribution import (
    ClassDataArchive,
    environment_dir,
    install_tools,
    jars_dir,
    java_command,
    kafka_archive,
)
from kafkalab.distribution import archive as archive_module
from kafkalab.distribution.jars import ensure_jars, locked_jars
from kafkalab.distribution.shared import PREPARING_VARIABLE, made_by_one, mark_used, sweep
from kafkalab.errors import JavaError, KafkaLabError
from kafkalab.waiting import wait_until
from support import PATIENCE, flip_bits

LONG_AGO = time.time() - 90 * 86_400


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("KAFKALAB_CACHE", str(tmp_path))
    return tmp_path


def entry_in(cache: Path, kind: str = "archives") -> Path:
    entry = cache / kind / "x-123"
    entry.mkdir(parents=True)
    (entry / "content").write_bytes(bytes(1000))
    os.utime(entry, (LONG_AGO, LONG_AGO))
    return entry


def unused_for_long(entry: Path) -> None:
    path = entry.parents[1] / "locks" / f"{entry.parent.name}-{entry.name}.used"
    os.utime(path, (LONG_AGO, LONG_AGO))


# -- made by one -------------------------------------------------------------------------------------------------------


def test_who_comes_second_waits_and_says_for_what(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    entry = cache / "archives/x"
    code = "import sys; from pathlib import Path; from kafkalab.distribution import made_by_one\n"
    code += "with made_by_one(Path(sys.argv[1]), 'the archive'): print('made', flush=True)"
    with made_by_one(entry, "the archive"):
        second = subprocess.Popen([sys.executable, "-c", code, str(entry)])
        said = ""

        def read() -> str:
            nonlocal said
            said += "".join(capfd.readouterr())
            return said

        wait_until(lambda: "waiting" in read(), PATIENCE, "the other process to wait", last_seen=read)
        assert f"waiting for process {os.getpid()}, which prepares the archive" in said
        assert "made" not in said
    assert second.wait(PATIENCE) == 0
    assert "made" in read()


def test_it_tells_that_it_prepares(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = cache / "notes"
    notes.mkdir()
    monkeypatch.setenv(PREPARING_VARIABLE, str(notes))
    with made_by_one(cache / "archives/x", "the archive"):
        assert [path.read_text() for path in notes.iterdir()] == ["the archive"]
    assert list(notes.iterdir()) == []


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_CACHE", "/dev/null")
    with (
        pytest.raises(KafkaLabError, match=r"/dev/null can't be written .*KAFKALAB_CACHE="),
        made_by_one(Path("/dev/null/a/b"), "x"),
    ):
        pass
    mark_used(Path("/dev/null/a/b"))  # is of no consequence


# -- swept -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["archives", "jars", "registries"])
def test_what_nobody_has_used_for_long_is_swept(cache: Path, kind: str) -> None:
    entry = entry_in(cache, kind)
    assert sweep(100) == 0
    assert sweep() == 1000
    assert not entry.exists()


def test_what_was_used_lately_is_kept(cache: Path) -> None:
    entry = entry_in(cache)
    code = (
        "import sys; from pathlib import Path; from kafkalab.distribution.shared import mark_used; mark_used(Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(entry)], check=True)
    assert sweep() == 0
    unused_for_long(entry)
    assert sweep() == 1000


def test_what_a_process_still_uses_is_kept(cache: Path) -> None:
    entry = entry_in(cache)
    mark_used(entry)
    unused_for_long(entry)
    assert sweep() == 0
    assert entry.exists()


def test_what_is_being_made_is_kept(cache: Path) -> None:
    entry = entry_in(cache)
    with made_by_one(entry, "x"):
        assert sweep() == 0
    unused_for_long(entry)
    assert sweep() == 1000


def test_the_layout_of_earlier_versions_is_swept(cache: Path) -> None:
    old = cache / "kafka-jars-4.3.1"
    old.mkdir()
    (old / "a.jar").write_bytes(bytes(500))
    assert sweep() == 0
    os.utime(old, (LONG_AGO, LONG_AGO))
    assert sweep() == 500
    assert not old.exists()


# -- environments --------------------------------------------------------------------------------------------------------


def test_an_environment_goes_with_its_java(cache: Path, tmp_path: Path) -> None:
    javas = [tmp_path / name / "bin/java" for name in ("one", "two")]
    for java in javas:
        java.parent.mkdir(parents=True)
        java.touch()
    one, two = map(environment_dir, javas)
    assert one != two
    sweep()
    assert one.exists() and two.exists()
    javas[0].unlink()
    sweep()
    assert not one.exists() and two.exists()


def test_another_java_has_commands_of_its_own(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.distribution.tools.classpath", lambda version=None: "all.jar")
    other = tmp_path / "java"
    other.symlink_to(java_command().parent.parent)
    mine = install_tools()
    script = (mine / "kafka-topics.sh").read_text()
    monkeypatch.setenv("KAFKALAB_JAVA_HOME", str(other))
    theirs = install_tools()
    assert str(other) in (theirs / "kafka-topics.sh").read_text()
    assert (mine / "kafka-topics.sh").read_text() == script
    assert str(other) not in script


# -- jars ----------------------------------------------------------------------------------------------------------------


def test_a_jar_that_another_group_has_is_not_downloaded_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that an earlier version of the course left in its own layout."""
    monkeypatch.delenv("KAFKALAB_CACHE")
    ensure_jars("kafka")
    whole = jars_dir("kafka")
    monkeypatch.setenv("KAFKALAB_CACHE", str(cache))
    (cache / "kafka-jars-4.3.1").symlink_to(whole)
    assert [path.stat().st_ino for path in ensure_jars("kafka")] == [path.stat().st_ino for path in sorted(whole.glob("*.jar"))]


def test_jars_of_another_version() -> None:
    names = {jar.file_name for jar in locked_jars("kafka", "4.2.1")}
    assert {"kafka_2.13-4.2.1.jar", "kafka-tools-4.2.1.jar", "kafka-shell-4.2.1.jar"} <= names
    assert not any("4.3.1" in name for name in names)
    assert jars_dir("kafka", "4.2.1") != jars_dir("kafka", "4.3.1") == jars_dir("kafka")
    with pytest.raises(ValueError, match=r"no Kafka '3\.9\.0' here; there are 4\.3\.1, 4\.2\.1"):
        jars_dir("kafka", "3.9.0")


# -- class-data archives ---------------------------------------------------------------------------------------------------


@pytest.fixture
def small(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassDataArchive:
    """An archive of a few of Java's own classes."""
    recorded = tmp_path / "small.txt.gz"
    recorded.write_bytes(gzip.compress(b"java/lang/Object\njava/lang/String\n"))
    monkeypatch.setattr(ClassDataArchive, "_list", recorded)
    archive = ClassDataArchive("small", "content", "small")
    archive.make("")
    return archive


def test_a_damaged_archive_is_noticed_and_made_anew(small: ClassDataArchive, capsys: pytest.CaptureFixture[str]) -> None:
    assert small.is_whole() and small.is_whole(thoroughly=True)
    options = small.options("")
    assert f"-XX:SharedArchiveFile={small.path}" in options
    flip_bits(small.path)
    assert not small.is_whole()
    assert small.options("") == options
    assert small.is_whole(thoroughly=True)
    assert "the class-data archive of small is damaged; making it anew" in capsys.readouterr().err
    done = subprocess.run([java_command(), *options, "-Xshare:on", "-version"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_one_that_cannot_be_made_anew_is_removed(
    small: ClassDataArchive, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise JavaError("out of memory")

    flip_bits(small.path)
    monkeypatch.setattr(ClassDataArchive, "_write", fail)
    assert small.options("") == []
    assert not small.exists()
    assert "JVMs start slowly without it: out of memory" in capsys.readouterr().err


def test_what_another_java_recorded_of_lambdas_is_left_out(small: ClassDataArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[list[str]] = []

    def write(_: ClassDataArchive, classes: str, lines: list[str], report: object) -> None:
        written.append(lines)
        if any(line.startswith("@") for line in lines):
            raise archive_module._Refused("crashed")

    content = gzip.compress(b"java/lang/Object\n@lambda-proxy java/lang/Object x\n")
    small._list.write_bytes(content)
    monkeypatch.setattr(ClassDataArchive, "_write", write)
    small.make("")
    assert written == [["java/lang/Object", "@lambda-proxy java/lang/Object x"], ["java/lang/Object"]]
    written.clear()
    ClassDataArchive("older", "content", "small", with_lambdas=False).make("")
    assert written == [["java/lang/Object"]]


@pytest.mark.parametrize("name", ["kafka", "spark", "registry"])
def test_lists_of_classes_name_no_place_of_a_machine(name: str) -> None:
    lines = (
        gzip.decompress((Path(archive_module.__file__).parent / f"recorded/{name}.txt.gz").read_bytes()).decode().splitlines()
    )
    assert len(lines) > 5000
    assert not [line for line in lines if " source: " in line or line.startswith("/")]


def test_damage_that_left_no_trace_is_noticed_by_a_thorough_look(
    small: ClassDataArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a disk does it: the file's times stay."""
    assert small.is_whole()
    monkeypatch.setattr(archive_module, "file_digest", lambda path: "another")
    assert small.is_whole()
    assert not small.is_whole(thoroughly=True)


def test_two_clones_have_one_archive(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the same Java, installed at another time, takes it."""
    mine = kafka_archive().folder
    other = tmp_path / "java"
    shutil.copytree(java_command().parent.parent, other, copy_function=shutil.copyfile)
    (other / "bin/java").chmod(0o755)
    monkeypatch.setenv("KAFKALAB_JAVA_HOME", str(other))
    assert kafka_archive().folder == mine


def test_threads_of_one_process_take_turns(cache: Path) -> None:
    order: list[str] = []
    inside = threading.Event()

    def first() -> None:
        with made_by_one(cache / "archives/x", "x"):
            inside.set()
            order.append("first in")
            order.append("first out")

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(PATIENCE)
    with made_by_one(cache / "archives/x", "x", lambda *_: None):
        order.append("second")
    thread.join()
    assert order == ["first in", "first out", "second"]
