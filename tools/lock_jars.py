"""Writes src/kafkalab/distribution/jars.json anew: which jars the course uses, in which group, with size and SHA-256.

Maven resolves the roots below (its answer is the one that Kafka's and Spark's own builds give), once per group; a jar
that an earlier group holds is not listed again. Needs `mvn` on the PATH, and PySpark. Learners never run this: they download
exactly what the lock names.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

import pyspark

KAFKA = "4.3.1"
OTHER_KAFKAS = ("4.2.1",)  # brokers and tools only: a cluster is upgraded from these
SPARK = "4.2.0"
ARTEMIS = "2.55.0"


def brokers_and_tools(version: str) -> dict[str, list[str]]:
    """Roots of a version's brokers and tools. Connect and its web server are no part of what they need."""
    return {
        f"org.apache.kafka:kafka_2.13:{version}": [],
        f"org.apache.kafka:kafka-tools:{version}": ["org.apache.kafka:connect-runtime", "org.apache.kafka:connect-json"],
        f"org.apache.kafka:kafka-shell:{version}": [],
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4": [],  # nothing pulls it in; without it brokers log nothing
    }


# Group → roots, each with what to leave out.
GROUPS: dict[str, dict[str, list[str]]] = {
    "kafka": brokers_and_tools(KAFKA),
    "spark": {
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}": [],
        f"org.apache.spark:spark-avro_2.13:{SPARK}": [],
        "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2": [],  # Delta Lake names one that is older than PySpark's Jackson
        # PySpark's RoaringBitmap is a newer one, which needs no shims.
        "io.delta:delta-spark_4.2_2.13:4.4.0": ["org.antlr:antlr4-runtime", "org.roaringbitmap:shims"],
    },
    "mirror": {
        f"org.apache.kafka:connect-mirror:{KAFKA}": [],
        f"org.apache.kafka:connect-runtime:{KAFKA}": [],
    },
    # Connectors that workers have from the start.
    "connect": {
        f"org.apache.kafka:connect-file:{KAFKA}": [],
    },
    # A Java compiler, for connectors and transforms of a learner's own.
    "ecj": {
        "org.eclipse.jdt:ecj:3.40.0": [],
    },
    # Kafka Streams without RocksDB, which is 73 MB: the course's applications keep their state in memory.
    "streams": {
        f"org.apache.kafka:kafka-streams:{KAFKA}": ["org.rocksdb:rocksdbjni"],
        f"org.apache.kafka:kafka-streams-test-utils:{KAFKA}": ["org.rocksdb:rocksdbjni"],
    },
    # An MQTT broker whose only protocol that is, with Java's own sockets, and with no peers.
    "mqtt-broker": {
        f"org.apache.artemis:artemis-server:{ARTEMIS}": [
            "org.jgroups:jgroups",
            "io.netty:netty-transport-native-epoll",
            "io.netty:netty-transport-native-kqueue",
        ],
        f"org.apache.artemis:artemis-mqtt-protocol:{ARTEMIS}": [],
        "org.slf4j:slf4j-simple:2.0.18": [],
    },
    "mqtt-client": {
        "org.eclipse.paho:org.eclipse.paho.client.mqttv3:1.2.5": [],
    },
    # A driver for PostgreSQL; what else it names are annotations for a checker of types.
    "jdbc": {
        "org.postgresql:postgresql:42.7.8": ["org.checkerframework:checker-qual"],
    },
    # Avro for a converter. What else it names workers have, or it's for files of Avro's own.
    "avro": {
        "org.apache.avro:avro:1.12.1": [
            "com.fasterxml.jackson.core:jackson-core",
            "com.fasterxml.jackson.core:jackson-databind",
            "org.apache.commons:commons-compress",
            "org.slf4j:slf4j-api",
        ],
    },
    "kdc": {
        "org.apache.hadoop:hadoop-minikdc:3.5.0": [],
    },
    # Kerberos within SASL, for a Java that was made without the module jdk.security.jgss, as the course's own was.
    "gssapi": {
        "org.wildfly.security:wildfly-elytron-sasl-gssapi:2.6.4.Final": [],
    },
}

# Group → files that hold all that it needs: archives of a connector and of a server; of Kafka's own tests, a remote tier in
# a folder.
FILES = {
    "debezium-postgres": ["io.debezium:debezium-connector-postgres:3.6.0.Final:plugin:tar.gz"],
    "registry": ["io.apicurio:apicurio-registry-app:3.3.3:all:tar.gz"],
    "tiered": [f"org.apache.kafka:kafka-{part}:{KAFKA}:test:jar" for part in ("clients", "storage")],
}

# Group → those that stand before it on a class path, whose jars it needn't list again.
AHEAD = {"mirror": ("kafka",), "connect": ("kafka", "mirror"), "streams": ("kafka",)}


def pom(roots: dict[str, list[str]]) -> str:
    """A project that depends on the roots."""
    dependencies = ""
    for root, excluded in roots.items():
        group, artifact, version = root.split(":")
        exclusions = "".join(
            "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>".format(*e.split(":")) for e in excluded
        )
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            f"<exclusions>{exclusions}</exclusions></dependency>"
        )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>lock</groupId><artifactId>lock</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )


def entry(coordinate: str, file: Path) -> dict[str, object]:
    """A file as the lock has it."""
    content = file.read_bytes()
    return {"coordinate": coordinate, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def maven(goal: str, folder: str, *arguments: str) -> None:
    """Let Maven copy something into a folder."""
    subprocess.run(
        ["mvn", "-q", "-B", f"dependency:{goal}", f"-DoutputDirectory={folder}/jars", *arguments], cwd=folder, check=True
    )


def resolved(roots: dict[str, list[str]]) -> list[dict[str, object]]:
    """All that the roots need, themselves included."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pom.xml").write_text(pom(roots))
        maven("copy-dependencies", folder, "-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true")
        found = []
        for jar in sorted(Path(folder, "jars").rglob("*.jar")):
            *group, artifact, version, _ = jar.relative_to(folder).parts[1:]
            found.append(entry(f"{'.'.join(group)}:{artifact}:{version}", jar))
        return found


def single(coordinate: str) -> dict[str, object]:
    """One file, without what it needs."""
    group, artifact, version, classifier, kind = coordinate.split(":")
    with tempfile.TemporaryDirectory() as folder:
        maven("copy", folder, f"-Dartifact={group}:{artifact}:{version}:{kind}:{classifier}")
        return entry(coordinate, next(Path(folder, "jars").glob(f"*.{kind}")))


def is_in_pyspark(jar: dict[str, object]) -> bool:
    """Whether PySpark itself has a jar of this name, in its own version."""
    name = artifact(jar).rpartition(":")[2]
    jars = Path(pyspark.__file__).parent / "jars"
    return any(jars.glob(f"{name}-[0-9]*.jar"))


def artifact(jar: dict[str, object]) -> str:
    """A jar's coordinate without the version."""
    return str(jar["coordinate"]).rpartition(":")[0]


def main() -> None:
    """Resolve every group and write the lock."""
    groups = {name: resolved(roots) for name, roots in GROUPS.items()}
    groups["spark"] = [jar for jar in groups["spark"] if not is_in_pyspark(jar)]
    for name, ahead in AHEAD.items():
        listed = {artifact(jar) for other in ahead for jar in groups[other]}
        groups[name] = [jar for jar in groups[name] if artifact(jar) not in listed]
    groups |= {name: [single(coordinate) for coordinate in coordinates] for name, coordinates in FILES.items()}
    others = {version: {"kafka": resolved(brokers_and_tools(version))} for version in OTHER_KAFKAS}
    lock = {"kafka_version": KAFKA, "groups": groups, "other_versions": others}
    target = Path(__file__).parent.parent / "src/kafkalab/distribution/jars.json"
    target.write_text(json.dumps(lock, indent=1) + "\n")


if __name__ == "__main__":
    main()
