"""Kafka Streams within a Python process, which is one of its own here: Java can't be started twice in one."""

from __future__ import annotations

import os
import subprocess
import sys

from kafkalab.distribution import java_home
from support import PATIENCE

PROGRAM = """
from kafkalab.streams import topology_test_driver, use_java

use_java()
use_java()
from java.time import Duration
from org.apache.kafka.common.serialization import StringDeserializer, StringSerializer
from org.apache.kafka.streams import KeyValue
from org.apache.kafka.streams.kstream import TimeWindows

def per_second(builder):
    windows = TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(1))
    counts = builder.stream("in").groupByKey().windowedBy(windows).count().toStream()
    counts.map(lambda key, count: KeyValue(key.key(), f"{key.window().start()}: {count}")).to("out")

with topology_test_driver(per_second, statestore_cache_max_bytes=0) as driver:
    events = driver.createInputTopic("in", StringSerializer(), StringSerializer())
    out = driver.createOutputTopic("out", StringDeserializer(), StringDeserializer())
    for at in (100, 200, 1500, 300):
        events.pipeInput("k", "v", at)
        print([(record.key(), record.value()) for record in out.readRecordsToList()])

from pathlib import Path
from kafkalab.streams.java import start_java

start_java(Path("never.log"))
"""

OTHER_JAVA = """
import jpype
from kafkalab.streams import use_java

jpype.startJVM()
use_java()
"""


def test_records_go_through_one_by_one_a_late_one_is_dropped_and_java_starts_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=PATIENCE)
    assert "JavaError: this process runs Java already, and can't start it twice. A StreamsApp is a process" in done.stderr
    assert done.stdout.splitlines() == ["[('k', '0: 1')]", "[('k', '0: 2')]", "[('k', '1000: 1')]", "[]"]


def test_java_that_something_else_has_started() -> None:
    environment = os.environ | {"JAVA_HOME": str(java_home())}
    done = subprocess.run([sys.executable, "-c", OTHER_JAVA], capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert "JavaError: this process runs Java already, but without Kafka Streams. Restart the kernel" in done.stderr
