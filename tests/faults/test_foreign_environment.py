"""Everything starts, and ends, in an environment that was made for other programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest

from kafkalab import wait_until
from kafkalab.paths import cache_dir
from support import PATIENCE, lives

NOBODY = "http://127.0.0.1:1"  # nothing listens there

# What other people's Java, Kafka, PostgreSQL, Spark and proxies may have left in the environment.
FOREIGN = {
    "JAVA_TOOL_OPTIONS": "-XX:+UseZGC -Dfoo=bar -DsocksProxyHost=127.0.0.1 -DsocksProxyPort=1",
    "_JAVA_OPTIONS": "-Xmx4m",
    "JDK_JAVA_OPTIONS": "--nonsense",
    "JAVA_HOME": "/nowhere/java-8",
    "KAFKA_OPTS": "-javaagent:/nowhere/agent.jar",
    "KAFKA_HEAP_OPTS": "-Xmx1k",
    "KAFKA_JMX_OPTS": "-Dcom.sun.management.jmxremote.port=1",
    "KAFKA_LOG4J_OPTS": "-Dlog4j2.configurationFile=/nowhere.xml",
    "CLASSPATH": "/nowhere/old.jar",
    "LOG_DIR": "/nowhere",
    "EXTRA_ARGS": "--nonsense",
    "LOG4J_DEBUG": "true",
    "LOG4J_CONFIGURATION_FILE": "/nowhere.xml",
    "QUARKUS_PROFILE": "dev",
    "QUARKUS_HTTP_ROOT_PATH": "/elsewhere",
    "APICURIO_STORAGE_KIND": "sql",
    "PGDATA": "/nowhere",
    "PGPORT": "1",
    "PGHOSTADDR": "192.0.2.1",
    "PGOPTIONS": "-c nonsense=1",
    "PGSERVICE": "nowhere",
    "PGSSLMODE": "verify-full",
    "PGTZ": "Mars/Phobos",
    "SPARK_CONF_DIR": "/nowhere",
    "SPARK_LOCAL_DIRS": "/proc/nowhere",
    "SPARK_LOCAL_IP": "192.0.2.1",
    "SPARK_LOCAL_HOSTNAME": "nowhere",
    "SPARK_REMOTE": "sc://127.0.0.1:1",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseZGC",
    "SPARK_WORKER_OPTS": "-Dfoo=bar",
    "SPARK_MASTER_HOST": "192.0.2.1",
    "PYSPARK_PYTHON": "/nowhere/python",
    "PYSPARK_DRIVER_PYTHON": "/nowhere/python",
    "PYSPARK_SUBMIT_ARGS": "--nonsense",
    "PYSPARK_PIN_THREAD": "false",
    "HADOOP_TOKEN_FILE_LOCATION": "/nowhere/token",
    "HADOOP_HOME": "/nowhere",
    "http_proxy": NOBODY,
    "HTTP_PROXY": NOBODY,
    "https_proxy": NOBODY,
    "all_proxy": "socks5://127.0.0.1:1",
    "NO_PROXY": "example.org",
    "PYTHONWARNINGS": "error::UserWarning",
    "PYTHONOPTIMIZE": "1",
    "LC_ALL": "C",
    "TZ": "Mars/Phobos",
    "COLUMNS": "1",
    "CDPATH": "/nowhere",
    "BASH_ENV": "/nowhere",
    "GREP_OPTIONS": "--nonsense",
}

# Starts what it's told to by name, in the order in which it's told, and answers in JSON.
OWNER = """
    import json, os, subprocess, sys, urllib.request
    from pathlib import Path
    from kafkalab import Cluster
    from kafkalab.distribution import put_tools_on_path
    from kafkalab.lifeline import Run, claimed_runs

    put_tools_on_path()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    cluster = Cluster(1, backend="local").start()
    kept = [cluster]

    def printed(*command):
        done = subprocess.run(command, text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout

    def tool():
        return printed("kafka-storage.sh", "random-uuid").splitlines()

    def workers():
        from confluent_kafka.admin import AdminClient, NewTopic
        from kafkalab import ConsoleConsumer, ConsoleProducer
        admin = AdminClient(cluster.client_config())
        for created in admin.create_topics([NewTopic(t, 1, 1) for t in "tu"]).values():
            created.result()
        producer, consumer = ConsoleProducer(cluster, "t"), ConsoleConsumer(cluster, "t", group="g", from_beginning=True)
        producer.send("m")
        consumer.wait_for(1)
        return [producer.alive, consumer.alive]

    def connect():
        from kafkalab import ConnectCluster
        kept.append(ConnectCluster(cluster).start())
        return json.load(urllib.request.urlopen(f"{kept[-1].url}/connectors"))

    def mirror():
        from kafkalab import MirrorMaker
        kept.append(Cluster(1, backend="local").start())
        flow = {"here->there.enabled": True, "here->there.topics": "t"}
        kept.append(MirrorMaker({"here": cluster, "there": kept[-1]}, flow).start())
        return kept[-1].running

    def registry():
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from kafkalab import SchemaRegistry
        kept.append(SchemaRegistry(cluster).start())
        url = kept[-1].url
        return SchemaRegistryClient({"url": url}).get_subjects(), printed("curl", "-s", f"{url}/subjects")

    def mqtt():
        from kafkalab import MqttBroker
        kept.append(MqttBroker().start())
        return kept[-1].running

    def kdc():
        from kafkalab.services.kdc import MiniKdc
        kept.append(MiniKdc(["alice"]).start())
        return kept[-1].running

    def postgresql():
        import psycopg
        from kafkalab import PostgreSQL
        kept.append(PostgreSQL(backend="local").start())
        with psycopg.connect(kept[-1].url) as connection:
            return connection.execute("SELECT current_user").fetchone()

    def streams():
        from kafkalab import StreamsApp
        kept.append(StreamsApp(cluster, Path(sys.argv[1])).start().wait_running(60))
        return kept[-1].state

    def java_in_python():
        from kafkalab.streams.driver import topology_test_driver
        topology_test_driver(lambda builder: builder.stream("t").to("u"), application_id="a").close()
        return True

    def spark():
        from kafkalab import spark_session
        session = spark_session(cluster)
        where = lambda rows: [__import__("pyspark").__file__]
        return session.sparkContext.parallelize([1], 1).mapPartitions(where).collect()

    def spark_cluster():
        from kafkalab import SparkCluster, spark_session
        spark_session().stop()
        kept.append(SparkCluster(1).start())
        where = lambda rows: [__import__("pyspark").__file__]
        return spark_session(master=kept[-1]).sparkContext.parallelize([1], 1).mapPartitions(where).collect()

    def runs():
        return [run for run in claimed_runs() if Run(run).is_mine()]

    for line in sys.stdin:
        try:
            answer = {"is": globals()[line.strip()]()}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer).encode() + b"\\n")
        answers.flush()
"""

TOPOLOGY = """
def topology(builder):
    builder.stream("t").to("u")
"""

TEMPORARY = "mein Ördner's"


class Owner:
    """A process in a foreign environment, whose folder for temporary files has a relative name with all kinds of characters."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder / TEMPORARY
        self.temporary.mkdir()
        self._errors = folder / "errors"
        (folder / "topology.py").write_text(TOPOLOGY)
        old = folder / "old-spark" / "python" / "pyspark"
        old.mkdir(parents=True)
        (old / "__init__.py").write_text("raise ImportError('PySpark of another Spark')")
        foreign = FOREIGN | {"SPARK_HOME": str(old.parents[1]), "TMPDIR": TEMPORARY, "HOME": str(folder)}
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(OWNER), "topology.py"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder,
                env={**os.environ, "KAFKALAB_CACHE": str(cache_dir()), **foreign},
            )  # fmt: skip

    def ask(self, what: str) -> Any:
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self._errors.read_text()
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["is"]


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    owner = Owner(tmp_path_factory.mktemp("foreign"))
    yield owner
    owner.process.kill()
    owner.process.wait()


def test_a_tool_prints_one_line(owner: Owner) -> None:
    assert [len(line) for line in owner.ask("tool")] == [22]


def test_workers(owner: Owner) -> None:
    assert owner.ask("workers") == [True, True]


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("connect", []),
        ("mirror", True),
        ("registry", [[], "[]"]),
        ("mqtt", True),
        ("kdc", True),
        ("postgresql", ["postgres"]),
        ("streams", "RUNNING"),
        ("java_in_python", True),
    ],
)
def test_a_service(owner: Owner, what: str, answer: object) -> None:
    assert owner.ask(what) == answer


@pytest.mark.parametrize("what", ["spark", "spark_cluster"])
def test_spark_runs_the_course_s_own_python(owner: Owner, what: str) -> None:
    [loaded] = owner.ask(what)
    assert loaded.startswith(str(Path(pyspark.__file__).parent))


def test_nothing_is_left_of_all_that_when_it_is_killed(owner: Owner) -> None:
    """Its temporary folder was named relative to its own working directory; its reaper works in another one."""
    runs = owner.ask("runs")
    assert len(runs) >= 9
    [base] = owner.temporary.glob("kafkalab-*")
    assert {path.name for path in base.iterdir()} == {"owners", *runs}
    started = psutil.Process(owner.process.pid).children(recursive=True)
    owner.process.kill()

    def left() -> list[object]:
        below = [
            Path(parent, name) for parent, folders, names in os.walk(base) for name in (*folders, *names) if name != "owners"
        ]
        return [*below, *filter(lives, started)]

    wait_until(lambda: not left(), PATIENCE, "everything to be gone", last_seen=left)
