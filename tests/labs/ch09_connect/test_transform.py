"""A transform of one's own: each wrong answer gets its sentence, and right ones pass, however they're written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect_support import PLAIN_JSON, SMT, TEXT, put, wait_until_failed
from kafkalab import Cluster, ConnectCluster, wait_until
from kafkalab.distribution import connect_classpath
from kafkalab.distribution.javac import compile_jar
from support import PATIENCE, Verdict, create
from support import put as send

pytestmark = pytest.mark.cluster

LAB, OFFICE, BOARD = "09_transform", "drivers-office", "drivers-board"
PHONES = {
    10: ("Diana", "555-0110"),
    11: ("Micky", "555-0111"),
    12: ("Laurence", "555-0112"),
    13: ("Lila", None),
    14: ("Poppy", "17"),
}
TOLERANT = {"errors.tolerance": "all"}
MASK = {"type": f"{SMT}.MaskField$Value", "fields": "phone", "replacement": "****"}
UNLESS_TOMBSTONE = {
    "predicates": "gone",
    "predicates.gone.type": f"{SMT}.predicates.RecordIsTombstone",
    "transforms.own.predicate": "gone",
    "transforms.own.negate": True,
}

FRAME = """
%s
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
public class %s<R extends ConnectRecord<R>> implements org.apache.kafka.connect.transforms.Transformation<R> {
    private int keep;
    public ConfigDef config() { return new ConfigDef()%s; }
    public void configure(Map<String, ?> settings) { keep = %s; }
    public R apply(R r) { %s }
    private R with(R r, Object row) {
        return r.newRecord(r.topic(), r.kafkaPartition(), r.keySchema(), r.key(), null, row, r.timestamp());
    }
    private String masked(Object phone, int keep) {
        int stars = Math.max(0, phone.toString().length() - keep);
        return "*".repeat(stars) + phone.toString().substring(stars);
    }
    public void close() {}
}"""
INT = '.define("keep", ConfigDef.Type.INT, 0, ConfigDef.Importance.HIGH, "")'
RANGED = INT.replace("0, ", "0, ConfigDef.Range.atLeast(0), ")
PARSED = '(int) config().parse(settings).get("keep")'
BY_HAND = 'settings.get("keep") == null ? 0 : Integer.parseInt(settings.get("keep").toString())'
ROW = "Map<String, Object> row = new HashMap<>((Map<String, Object>) r.value()); "
PHONE = 'row.computeIfPresent("phone", (field, phone) -> masked(phone, keep)); '
NULL = "if (r.value() == null) return r; "
END = "return with(r, row);"

# A validator of one's own, in a class with a package.
OWN = """.define("keep", ConfigDef.Type.INT, 0, (name, value) -> {
    if (value == null || (int) value < 0) throw new org.apache.kafka.common.config.ConfigException(name, value, "below 0"); },
    ConfigDef.Importance.LOW, "")"""

TRANSFORMS = {
    "Right": ("", RANGED, PARSED, NULL + ROW + PHONE + END),
    "InPlace": (
        "package trucking;",
        OWN,
        PARSED,
        'if (r.value() instanceof Map m && m.containsKey("phone")) m.put("phone", masked(m.get("phone"), keep)); return r;',
    ),
    "NoNull": ("", RANGED, PARSED, ROW + PHONE + END),
    "Drops": ("", RANGED, PARSED, "if (r.value() == null) return null; " + ROW + PHONE + END),
    "Fills": ("", RANGED, PARSED, "if (r.value() == null) return with(r, Map.of()); " + ROW + PHONE + END),
    "Short": (
        "",
        RANGED,
        PARSED,
        NULL
        + ROW
        + 'row.computeIfPresent("phone", (f, p) -> "****" + p.toString().substring(p.toString().length() - keep)); '
        + END,
    ),
    "Stars": ("", RANGED, PARSED, NULL + ROW + 'row.computeIfPresent("phone", (f, p) -> "********"); ' + END),
    "Fixed": ("", RANGED, PARSED, NULL + ROW + PHONE.replace("keep)", "4)") + END),
    "NoPhone": ("", RANGED, PARSED, NULL + ROW + 'row.put("phone", masked(row.getOrDefault("phone", "none"), keep)); ' + END),
    "Names": ("", RANGED, PARSED, NULL + ROW + PHONE + 'row.put("name", masked(row.get("name"), 2)); ' + END),
    "OnlyPhone": ("", RANGED, PARSED, NULL + ROW + PHONE + 'row.keySet().retainAll(Set.of("phone")); ' + END),
    "Undeclared": ("", "", BY_HAND, NULL + ROW + PHONE + END),
    "Unbounded": ("", INT, PARSED, NULL + ROW + PHONE + END),
    "Narrow": ("", RANGED.replace("Range.atLeast(0)", "Range.between(0, 4)"), PARSED, NULL + ROW + PHONE + END),
}


@pytest.fixture(scope="module")
def _compiled(_worker: ConnectCluster) -> None:
    """Let the chapter's worker know all of these transforms."""
    sources = {name: FRAME % (package, name, *parts) for name, (package, *parts) in TRANSFORMS.items()}
    services = {"trucking.InPlace" if name == "InPlace" else name: f"{SMT}.Transformation" for name in sources}
    compile_jar(sources, services, connect_classpath(None), _worker.plugins / "transforms.jar")
    _worker.workers[0].restart()


class Drivers:
    """The topic of the lab's first part, and the sinks that the learner makes."""

    def __init__(self, cluster: Cluster, connect: ConnectCluster, folder: Path) -> None:
        self._connect, self._folder = connect, folder
        create(cluster, "drivers", 1, 1)
        rows = [{"id": id, "name": name} | ({"phone": phone} if phone else {}) for id, (name, phone) in PHONES.items()]
        send(cluster, "drivers", [*((str(row["id"]), json.dumps(row), 0) for row in rows), ("11", None, 0)])

    def put(self, name: str, link: dict[str, object], more: dict[str, object]) -> Path:
        """Make a sink, whose chain is this link."""
        file = self._folder / f"{name}.txt"
        config = {"connector.class": "FileStreamSink", "file": str(file), "topics": "drivers", **TEXT, **PLAIN_JSON}
        chain = {"transforms": "own"} | {f"transforms.own.{setting}": value for setting, value in link.items()}
        put(self._connect, name, {**config, **chain, **more})
        return file

    def fails(self, name: str, link: dict[str, object]) -> None:
        """Make a sink, and wait until its task has failed."""
        self.put(name, link, {})
        wait_until_failed(self._connect, name)

    def write(self, name: str, link: dict[str, object], lines: int = 6, **more: object) -> None:
        """Make a sink, and wait until it has written its lines."""
        file = self.put(name, link, more)
        seen = self._connect.states
        wait_until(lambda: file.exists() and file.read_text().count("\n") >= lines, PATIENCE, f"{lines} lines", last_seen=seen)
        self._connect.wait_until_running(name)

    def write_both(self, kind: str, lines: int = 6, **more: object) -> None:
        """Make both sinks with one transform, as the lab asks for them."""
        self.write(OFFICE, {"type": kind, "keep": 4}, lines, **more)
        self.write(BOARD, {"type": kind}, lines, **more)


@pytest.fixture
def drivers(single: Cluster, connect: ConnectCluster, _compiled: None, tmp_path: Path) -> Drivers:
    return Drivers(single, connect, tmp_path)


def test_nothing_is_done_yet(single: Cluster, connect: ConnectCluster, drivers: Drivers, verdict: Verdict) -> None:
    verdict.says("Give check() your answer as connect=", LAB, single)
    passed, printed = verdict(LAB, single, connect=connect)
    assert not passed
    assert "There is no connector 'drivers-office' yet. The workers know: none." in printed
    assert "0 of 5 requirements are met." in printed


@pytest.mark.parametrize(
    ("kind", "more"),
    [("Right", {}), ("trucking.InPlace", {}), ("InPlace", {}), ("NoNull", UNLESS_TOMBSTONE)],
    ids=["a copy of the row", "the row itself, in a package", "by the class's short name", "a predicate for the tombstone"],
)
def test_a_right_transform_passes_whatever_its_name_and_its_way(
    single: Cluster, connect: ConnectCluster, drivers: Drivers, verdict: Verdict, kind: str, more: dict[str, object]
) -> None:
    drivers.write_both(kind, **more)
    verdict.passes(LAB, single, connect=connect)


def test_settings_of_the_sinks(single: Cluster, connect: ConnectCluster, drivers: Drivers, verdict: Verdict) -> None:
    drivers.write(OFFICE, {"type": "Right"}, transforms="")
    verdict.says("drivers-office has no transform", LAB, single, connect=connect)
    drivers.write(OFFICE, MASK, **UNLESS_TOMBSTONE)
    verdict.says("The chain of drivers-office is MaskField$Value, which is Kafka's", LAB, single, connect=connect)
    drivers.write(OFFICE, {"type": "RegexRouter", "regex": "drivers", "replacement": "people"})
    verdict.says("The chain of drivers-office is RegexRouter, which is Kafka's", LAB, single, connect=connect)
    drivers.write(OFFICE, {"type": "Right"})
    verdict.says("transforms.own.keep of drivers-office is not set", LAB, single, connect=connect)
    drivers.write(OFFICE, {"type": "Right", "keep": 4})
    verdict.says("There is no connector 'drivers-board' yet", LAB, single, connect=connect)
    drivers.write(BOARD, {"type": "Right", "keep": 0})
    verdict.says("transforms.own.keep of drivers-board is 0. Leave it out", LAB, single, connect=connect)


@pytest.mark.parametrize("kind", ["NoNull", "Short"])
def test_a_transform_that_fails(
    single: Cluster, connect: ConnectCluster, drivers: Drivers, verdict: Verdict, kind: str
) -> None:
    drivers.fails(OFFICE, {"type": kind, "keep": 4})
    verdict.says("The state of task 0 of drivers-office is FAILED", LAB, single, connect=connect)


@pytest.mark.parametrize(
    ("kind", "lines", "more", "sentence"),
    [
        ("NoNull", 5, TOLERANT, "a tombstone with the key 11, and the file of drivers-office has no line null"),
        ("Drops", 5, {}, "a tombstone with the key 11, and the file of drivers-office has no line null"),
        ("Fills", 6, {}, "a tombstone with the key 11, and the file of drivers-office has no line null"),
        ("Short", 5, TOLERANT, "no line with the id of Poppy"),
        ("OnlyPhone", 6, {}, "no line with the id of Diana"),
        ("Stars", 6, {}, "shows Diana's number as '********'. Which of its characters should stay"),
        ("NoPhone", 6, {}, "In the file of drivers-office, Lila has a phone, and the record has none"),
        ("Names", 6, {}, "In the file of drivers-office, the field name of Diana isn't as in drivers"),
        ("Fixed", 6, {}, "The file of drivers-board shows Diana's number as '****0110'. drivers-board doesn't set `keep`"),
        ("Undeclared", 6, {}, "A worker has nothing against `many` for transforms.own.keep"),
        ("Unbounded", 6, {}, "A worker has nothing against -1 for transforms.own.keep"),
        ("Narrow", 6, {}, "A worker refuses 12 for transforms.own.keep"),
    ],
)
def test_a_wrong_transform(
    single: Cluster,
    connect: ConnectCluster,
    drivers: Drivers,
    verdict: Verdict,
    kind: str,
    lines: int,
    more: dict[str, object],
    sentence: str,
) -> None:
    drivers.write_both(kind, lines, **more)
    verdict.says(sentence, LAB, single, connect=connect)
