"""What is told of a process that ended by itself."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalab.cluster.backends.failure import broker_failed, ended, reason_in
from kafkalab.cluster.spec import Node
from kafkalab.exits import exit_status

LOGS = Path(__file__).with_name("logs")


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            "Unrecognized option: -Xbad\nError: Could not create the Java Virtual Machine.\nError: A fatal exception.",
            "Unrecognized option: -Xbad",
        ),
        (
            "Invalid maximum heap size: -Xmx9999999g\nError: Could not create the Java Virtual Machine.",
            "Invalid maximum heap size",
        ),
        ("Too small maximum heap\n", "Too small maximum heap"),
        ("Error occurred during initialization of VM\nMultiple garbage collectors selected\n", "Multiple garbage collectors"),
        (
            "[2026-11-26 19:04:03,260] ERROR Exiting Kafka (kafka.Kafka)\n"
            "org.apache.kafka.common.ConfigException: Invalid value\n",
            "ConfigException: Invalid",
        ),
        ("[2026-11-26 19:04:03,260] ERROR Exiting Kafka (kafka.Kafka)\n", "Exiting Kafka (kafka.Kafka)"),
        ('2026-11-26 19:04:03.260 GMT [7] FATAL:  unrecognized configuration parameter "x"\n', "unrecognized configuration"),
        (
            "Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'x'",
            "ModuleNotFoundError",
        ),
        ("", "it gave no reason"),
    ],
)
def test_the_reason_is_what_java_or_kafka_says(log: str, reason: str) -> None:
    assert reason_in({"node.log": log}).startswith(reason)
    failed = str(broker_failed(Node(1, broker=True, controller=False), {"output.log": "", "node.log": log}, 1))
    assert f"broker 1 ended by itself: {reason}" in failed


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        # The broker shuts down after it, and complains of something else on its way.
        (
            "absent-class",
            "KafkaException: Class no.such.Reporter cannot be found; caused by ClassNotFoundException: no.such.Reporter",
        ),
        ("no-memory", "OutOfMemoryError: Java heap space"),
        ("agent", "Error opening zip file or JAR manifest missing : /none.jar"),
    ],
)
def test_the_last_cause_counts_and_its_file_is_named(sample: str, reason: str) -> None:
    log = (LOGS / f"{sample}.log").read_text()
    assert reason_in({"output.log": "", "node.log": log}).startswith(reason)
    assert reason_in({"output.log": "", "node.log": log}).endswith("(node.log)")


def test_an_error_that_came_later_in_another_file_counts() -> None:
    output = 'Exception in thread "main" java.lang.IllegalStateException: late'
    node = "[2026-11-26 19:04:01,000] WARN odd\njava.io.IOException: early\n"
    assert reason_in({"output.log": output, "node.log": node}) == "IllegalStateException: late (output.log)"


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_signal_that_ended_a_child_is_named(sign: signal.Signals) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    child.send_signal(sign)
    status = child.wait()
    child.stdin.close()
    assert re.fullmatch(rf"the relay was ended by {sign.name} \({sign.value}\): .+", ended("the relay", status, {}))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "exit status unknown"),
        (0, "exit code 0"),
        (1, "exit code 1"),
        (-9, "ended by SIGKILL (9): killed from outside; out of memory?"),
        (137, "ended by SIGKILL (9): killed from outside; out of memory?"),  # a container's
        (143, "ended by SIGTERM (15): somebody told it to end"),  # a JVM's
        (-11, "ended by SIGSEGV (11): it crashed"),
    ],
)
def test_exit_statuses_in_words(status: int | None, words: str) -> None:
    assert exit_status(status) == words


def test_a_crash_is_explained_by_the_log() -> None:
    log = "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at pc=0x00007f, pid=1\n"
    assert ended("broker 0", -6, {"output.log": log}) == (
        "broker 0 was ended by SIGABRT (6): it crashed; SIGSEGV (0xb) at pc=0x00007f, pid=1 (output.log)"
    )


def test_own_options_for_java_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_JAVA_OPTIONS", "-XX:+UseZGC")
    log = "Picked up _JAVA_OPTIONS: -XX:+UseZGC\nError occurred during initialization of VM\nMultiple garbage collectors selected\n"
    assert ended("broker 0", 1, {"output.log": log}) == (
        "broker 0 ended by itself: Multiple garbage collectors selected (output.log); KAFKALAB_JAVA_OPTIONS is -XX:+UseZGC"
    )
