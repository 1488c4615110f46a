"""Writes src/kafkalab/distribution/jars.json anew: which jars the course uses, in which group, with size and SHA-256.

Maven resolves the roots below (its answer is the one that Kafka's and Spark's own builds give), once per group; a jar
that an earlier group holds is not listed again. Needs `mvn` on the PATH. Learners never run this: they download
exactly what the lock names.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

KAFKA = "4.3.1"
SPARK = "4.0.0"

# Group → roots, each with what to leave out. Connect and its web server are no part of what brokers and tools need.
GROUPS: dict[str, dict[str, list[str]]] = {
    "kafka": {
        f"org.apache.kafka:kafka_2.13:{KAFKA}": [],
        f"org.apache.kafka:kafka-tools:{KAFKA}": ["org.apache.kafka:connect-runtime", "org.apache.kafka:connect-json"],
        f"org.apache.kafka:kafka-shell:{KAFKA}": [],
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4": [],  # nothing pulls it in; without it brokers log nothing
    },
    "spark": {
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}": [],
    },
}

# Part of PySpark itself.
IN_PYSPARK = ("hadoop-client", "spark-tags", "scala-library", "scala-parallel", "slf4j-api", "snappy-java", "lz4-java", "jsr305")


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


def resolve(roots: dict[str, list[str]], folder: Path) -> list[dict[str, object]]:
    """Let Maven copy everything that the roots need into a folder, and describe it."""
    (folder / "pom.xml").write_text(pom(roots))
    subprocess.run(
        ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'jars'}",
         "-Dmdep.useRepositoryLayout=true"],
        cwd=folder, check=True,
    )  # fmt: skip
    found = []
    for jar in sorted((folder / "jars").rglob("*.jar")):
        *group, artifact, version, _ = jar.relative_to(folder / "jars").parts
        content = jar.read_bytes()
        found.append({
            "coordinate": f"{'.'.join(group)}:{artifact}:{version}",
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        })  # fmt: skip
    return found


def main() -> None:
    """Resolve every group and write the lock."""
    lock: dict[str, object] = {"kafka_version": KAFKA, "groups": {}}
    for name, roots in GROUPS.items():
        with tempfile.TemporaryDirectory() as folder:
            jars = resolve(roots, Path(folder))
        if name == "spark":
            jars = [j for j in jars if not str(j["coordinate"]).split(":")[1].startswith(IN_PYSPARK)]
        lock["groups"][name] = jars  # type: ignore[index]
    target = Path(__file__).parent.parent / "src/kafkalab/distribution/jars.json"
    target.write_text(json.dumps(lock, indent=1) + "\n")


if __name__ == "__main__":
    main()
