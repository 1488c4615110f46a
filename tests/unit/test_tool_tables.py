"""What Kafka's tools describe is shown as tables, and so are Spark's DataFrames."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from kafkalab.widgets import tool_tables
from kafkalab.widgets.tool_tables import Table, show_tables, tables_in

TOPIC = """Topic: atu\tTopicId: OwqqRXH-Q06R6kyV4XMKMA\tPartitionCount: 2\tConfigs: min.insync.replicas=2
\tTopic: atu\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: 
\tTopic: atu\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr: \tElr: 2\tLastKnownElr: 
"""  # noqa: W291
GROUPS = """
Consumer group 'billing' has no active members and it has had none for quite some time.

GROUP    TOPIC   PARTITION  CONSUMER-ID                               CLIENT-ID
billing  orders  0          -                                         -
billing  orders  1          me-3f452259-aaed-4eb3-acba-106e70359810   me

Consumer group 'shipping' is rebalancing.

GROUP    COORDINATOR (ID)      STATE   #MEMBERS
shipping localhost:9092 (0)    Stable  1
"""
QUORUM = "NodeId\tDirectoryId           \tStatus  \t\n100   \tnH0D4j71SOSTi_UQuw12NA\tLeader  \t\n0     \tDV5GJZEiSKihIyfgmOD7fg\t\t\n"
FEATURES = """Feature: group.version       SupportedMinVersion: 0        Epoch: 20
Feature: metadata.version    SupportedMinVersion: 3.3-IV3  Epoch: 20
"""
MEMBERS = "GROUP  MEMBER  ASSIGNMENTS\ntolls  one     ACTIVE: 0:[2,5]; \n"
NO_TABLE = "Dynamic configs for topic connect-configs are:\n  cleanup.policy=compact sensitive=false\n"
STATUS = 'ClusterId:              c-bLzTDXRaeXUcuZvdUdwg\nCurrentVoters:          [{"id": 0}, {"id": 1}]\n'


def test_a_topic_has_a_line_and_a_row_for_each_partition() -> None:
    columns = ("Topic", "Partition", "Leader", "Replicas", "Isr", "Elr", "LastKnownElr")
    rows = [("atu", "0", "1", "1,2", "1,2", "", ""), ("atu", "1", "none", "2,1", "", "2", "")]
    assert tables_in(TOPIC) == [Table([TOPIC.splitlines()[0]], columns, rows)]
    first, second = tables_in(TOPIC + TOPIC)
    assert first == second


def test_groups_have_a_table_each_below_what_is_said_of_them() -> None:
    billing, shipping = tables_in(GROUPS)
    assert billing.above == [GROUPS.splitlines()[1]]
    assert billing.columns == ("GROUP", "TOPIC", "PARTITION", "CONSUMER-ID", "CLIENT-ID")
    assert [row[2] for row in billing.rows] == ["0", "1"]
    assert shipping.above == ["Consumer group 'shipping' is rebalancing."]
    assert shipping.columns == ("GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS")
    assert shipping.rows == [("shipping", "localhost:9092 (0)", "Stable", "1")]


def test_other_tools_write_tables_too() -> None:
    (quorum,) = tables_in(QUORUM)
    assert quorum.columns == ("NodeId", "DirectoryId", "Status")
    assert quorum.rows == [("100", "nH0D4j71SOSTi_UQuw12NA", "Leader"), ("0", "DV5GJZEiSKihIyfgmOD7fg", "")]
    (features,) = tables_in(FEATURES)
    assert features.columns == ("Feature", "SupportedMinVersion", "Epoch")
    assert features.rows == [("group.version", "0", "20"), ("metadata.version", "3.3-IV3", "20")]
    assert tables_in(MEMBERS)[0].rows == [("tolls", "one", "ACTIVE: 0:[2,5];")]


@pytest.mark.parametrize("text", [NO_TABLE, STATUS])
def test_what_is_no_table_has_no_rows(text: str) -> None:
    assert not any(table.rows for table in tables_in(text))


@pytest.fixture
def notebook(shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A notebook with two of Kafka's tools, which say what they were called with, and print a table or none."""
    for name, printed in (("kafka-topics.sh", TOPIC), ("kafka-configs.sh", NO_TABLE)):
        tool = tmp_path / name
        tool.write_text(f'#!/bin/sh\nprintf %s "{printed}"\necho "asked $*" >&2\nexit 3\n')
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    show_tables()
    return shell


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What cells display."""
    bundles: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: bundles.append(bundle))
    return bundles


@pytest.mark.parametrize(
    "cell",
    [
        "!kafka-topics.sh --bootstrap-server {server} --describe --topic 'a b'",
        "if True:\n    !kafka-topics.sh --bootstrap-server {server} \\\n        --describe --topic 'a b'",
        "def look(server):\n    !kafka-topics.sh --bootstrap-server $server --describe --topic 'a b'\nlook('here:9092')",
    ],
)
def test_a_described_topic_is_a_table_with_the_text_folded(
    cell: str, notebook: InteractiveShell, displayed: list[dict[str, str]]
) -> None:
    notebook.user_ns["server"] = "here:9092"
    assert notebook.run_cell(cell).success
    (bundle,) = displayed
    assert bundle["text/plain"].startswith(TOPIC) and f"<pre>{escape(TOPIC)}" in bundle["text/html"]
    assert "asked --bootstrap-server here:9092 --describe --topic a b" in bundle["text/plain"]
    assert "<th>Leader</th>" in bundle["text/html"] and "<td>none</td>" in bundle["text/html"]
    assert notebook.user_ns["_exit_code"] == 3


def test_what_has_no_table_is_shown_as_text(notebook: InteractiveShell, displayed: list[dict[str, str]]) -> None:
    with capture_output() as captured:
        notebook.run_cell("!kafka-configs.sh --describe --topic x")
    assert NO_TABLE in captured.stdout and not displayed


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ("lines = !kafka-topics.sh --describe", "lines"),
        ("!kafka-topics.sh --create --topic describe-me", None),
        ("text = '''\n!kafka-console-producer.sh\n'''", "text"),
    ],
)
def test_other_cells_are_as_they_were(
    cell: str, kept: str | None, notebook: InteractiveShell, displayed: list[dict[str, str]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert notebook.run_cell(cell).success
    assert not displayed
    assert kept is None or "kafka-" in str(notebook.user_ns[kept]) or "Leader: 1" in str(notebook.user_ns[kept])


def test_a_uuid_is_shortened_html_is_escaped_and_a_column_of_dashes_left_out() -> None:
    rows = [("me-3f452259-aaed-4eb3-acba-106e70359810", "-", "-"), ("<i>", "-", "4")]
    html = tool_tables._html(Table(["<a>\tb"], ("A", "B", "C"), rows))
    assert "<tr><th>A</th><th>C</th></tr>" in html
    assert "<td>me-3f45…</td>" in html and "&lt;i&gt;" in html and "&lt;a&gt; · b" in html


class Frame:
    """Stands in for a DataFrame of Spark."""

    def __init__(self, streaming: bool) -> None:
        self.isStreaming = streaming

    def _repr_html_(self) -> str:
        if self.isStreaming:
            raise RuntimeError("a stream has no rows")
        return "<table></table>"


@pytest.mark.parametrize(("streaming", "html"), [(False, "<table></table>"), (True, None)])
@pytest.mark.parametrize("module", ["pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe"])
def test_a_dataframe_is_a_table_unless_it_streams(
    streaming: bool, html: str | None, module: str, notebook: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame: Any = type("DataFrame", (Frame,), {"__module__": module})(streaming)
    assert notebook.display_formatter is not None
    forms, _ = notebook.display_formatter.format(frame)
    assert forms.get("text/html") == html
