"""Show as tables what Kafka's tools describe, and what is in Spark's DataFrames, in the cells of a notebook."""

from __future__ import annotations

import functools
import re
import subprocess
from dataclasses import dataclass, field
from html import escape
from typing import Any

from kafkalab.shell import notebook_shell

__all__ = ["Table", "show_tables", "tables_in"]

_MAGIC = "describe_as_table"
_DESCRIBES = re.compile(r"^([ \t]*)!(?=kafka-[\w-]+\.sh\s(?:.*\\\n)*(?:.*\s)?(?:--)?describe(?!\S))", re.MULTILINE)
_TITLE = re.compile(r"[A-Z#][\w#-]*(?: \(\w+\))?")  # of a column: CURRENT-OFFSET, #PARTITIONS, COORDINATOR (ID), NodeId
_PAIR = re.compile(r"([A-Za-z]\w*): ?(.*)")  # Leader: 1
_APART = re.compile(r"\t| {2,}")
_UUID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


@dataclass
class Table:
    """Rows that a tool printed, and the lines above them."""

    above: list[str] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)


def tables_in(text: str) -> list[Table]:
    """Return the tables that one of Kafka's tools printed. A table without rows has lines that belong to none.

    Two forms are known: a line of titles with rows below it, as ``kafka-consumer-groups.sh`` prints them, and ``Name: value``
    pairs, in lines that are indented, as those of partitions by ``kafka-topics.sh``, or that name the same as
    their neighbour, as those of ``kafka-features.sh``.
    """
    lines = text.splitlines()
    pairs = [_pairs(line) for line in lines]
    names = [(), *map(tuple, pairs), ()]
    tables = [Table()]
    for number, line in enumerate(lines):
        before, own, after = names[number : number + 3]
        table = tables[-1]
        if not line.strip():
            if table.rows:
                tables.append(Table())
        elif own and (line.startswith("\t") or own in (before, after)) and table.columns in ((), own):
            table.columns = own
            table.rows.append(tuple(pairs[number].values()))
        elif not own and len(cells := _cells(line, len(table.columns))) == len(table.columns):
            table.rows.append(cells)
        else:
            if table.rows:
                tables.append(table := Table())
            titles = _cells(line)
            if len(titles) > 1 and all(map(_TITLE.fullmatch, titles)):
                table.columns = titles
            else:
                table.above.append(line)
    return [table for table in tables if table.rows or table.above]


def _pairs(line: str) -> dict[str, str]:
    """Return what stands in a line as ``Name: value``, or nothing if anything else stands there."""
    found = [_PAIR.fullmatch(part.strip()) for part in _APART.split(line.strip("\t "))]
    return {pair[1]: pair[2] for pair in found if pair} if len(found) > 1 and all(found) else {}


def _cells(line: str, most: int = 0) -> tuple[str, ...]:
    """Split a line at its tabs; where it has none, at spaces, and then all that's left goes to the last of `most` cells."""
    if "\t" in line:
        parts = line.removesuffix("\t").split("\t")
    else:
        parts = re.split(r" +(?!\()", line.strip(), maxsplit=max(most - 1, 0))
    return tuple(part.strip() for part in parts)


def _html(table: Table) -> str:
    """Draw a table without columns that have a dash in every row, and with the first digits of a UUID."""
    above = "".join(f"<div>{escape(line.strip()).replace(chr(9), ' · ')}</div>" for line in table.above)
    if not table.rows:
        return above
    filled = [number for number in range(len(table.columns)) if any(row[number] != "-" for row in table.rows)]
    lines = [[("th", table.columns[number]) for number in filled]]
    lines += [[("td", _UUID.sub(r"\1…", row[number])) for number in filled] for row in table.rows]
    rows = "".join(f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for tag, cell in line)}</tr>" for line in lines)
    return f"{above}<table>{rows}</table>"


def show_tables() -> None:
    """Show tables in this notebook from now on. Does nothing where there's no IPython.

    What ``!kafka-….sh … --describe`` prints is shown as tables, with the text folded below, and as text where no table is
    in it. Of a DataFrame of Spark that ends a cell, IPython asks for HTML, which Spark makes if
    ``spark.sql.repl.eagerEval.enabled`` is set; not so of a stream's, which has no rows to show.
    """
    shell = notebook_shell()
    if shell is None:
        return
    shell.input_transformers_cleanup.append(_with_magic)
    shell.register_magic_function(functools.partial(_describe, shell), "line", _MAGIC)
    html = shell.display_formatter.formatters["text/html"]
    for module in ("pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe"):
        html.for_type_by_name(module, "DataFrame", lambda frame: None if frame.isStreaming else frame._repr_html_())


def _with_magic(lines: list[str]) -> list[str]:
    return _DESCRIBES.sub(rf"\1%{_MAGIC} ", "".join(lines)).splitlines(keepends=True)


def _describe(shell: Any, command: str) -> None:
    from IPython.display import display  # takes long where there's no notebook

    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    shell.user_ns["_exit_code"] = done.returncode  # as IPython does after ``!``
    tables = tables_in(done.stdout)
    if any(table.rows for table in tables):
        fold = f"<details><summary>As the tool prints it</summary><pre>{escape(done.stdout)}</pre></details>"
        display({"text/html": "".join(map(_html, tables)) + fold, "text/plain": done.stdout}, raw=True)
    else:
        print(done.stdout, end="")
