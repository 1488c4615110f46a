"""Two files of drivers that show the end of each phone number, by a transform of the learner's own with a setting."""

from __future__ import annotations

import json
import re

from kafkalab.checks.connectors import answer_of, config_of, errors_of, runs, target_lines
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import quoted

__all__ = ["lab"]

TOPIC, OFFICE, BOARD = "drivers", "drivers-office", "drivers-board"
KEPT = {OFFICE: 4, BOARD: 0}
SETTING, FIELD = "keep", "phone"
_KAFKAS = "org.apache.kafka."
_NAMED = re.compile(r"(?:^|, )(\w+)=")
_ANEW = "Lines that were written before stay as they are: `write_drivers` writes the file again."

Row = dict[str, str]

lab = Lab("09_transform")

check = lab.add_check(
    "09_transform",
    "Write a transform",
    hints=(
        "What failed at the tombstone? `apply` may return the record that it got.",
        "`define` takes the name, ConfigDef.Type.INT, the default, a validator such as those of ConfigDef.Range, "
        "ConfigDef.Importance.HIGH and a sentence. In `configure`, `config().parse(settings)` gives values of these types.",
        "Count the stars: the text's length less `keep`, but never less than 0. Java's text has `repeat` and `substring`.",
        "The settings of one link are `transforms`, its name, and `transforms.NAME.type`, the name of your class. Your own "
        "setting stands beside that: `transforms.NAME.keep`.",
    ),
)


def transforms(config: dict[str, str]) -> dict[str, str]:
    """Return the class of each link in a connector's chain of transforms, by the link's name."""
    links = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    return {name: config.get(f"transforms.{name}.type", "") for name in links}


def own_link(ctx: CheckContext, connector: str) -> str:
    """Return the name of the link whose class isn't Kafka's. Raise `Unmet` if there's none."""
    config = config_of(ctx, connector)
    links = transforms(config)
    if not links:
        raise Unmet(f"{connector} has no transform. Which of its settings names the chain?")
    plugins = [plugin["class"] for plugin in answer_of(ctx, "/connector-plugins?connectorsOnly=false")]
    short = {name.rpartition(".")[2] for name in plugins if name.startswith(_KAFKAS)}
    own = [name for name, kind in links.items() if not kind.startswith(_KAFKAS) and kind not in short]
    if not own:
        found = " and ".join(kind.rpartition(".")[2] for kind in links.values())
        raise Unmet(f"The chain of {connector} is {found}, which is Kafka's. What is the name of the class that you compiled?")
    return max(own, key=lambda name: f"transforms.{name}.{SETTING}" in config)


@check.requires("drivers-office and drivers-board run, each with a transform that isn't Kafka's")
def sinks_run(ctx: CheckContext) -> None:
    for sink in KEPT:
        runs(ctx, sink)
        name = f"transforms.{own_link(ctx, sink)}.{SETTING}"
        found = config_of(ctx, sink).get(name)
        if sink == OFFICE and found != str(KEPT[OFFICE]):
            raise Unmet(f"{name} of {sink} is {found or 'not set'}. How many characters should the office see?")
        if sink == BOARD and found is not None:
            raise Unmet(f"{name} of {sink} is {found}. Leave it out: which value does your transform use then?")


# -- what the files hold ----------------------------------------------------------------------------------------------


def sent(ctx: CheckContext) -> dict[str, Row]:
    """Return the fields of each driver in the topic, by id. The last record of an id counts."""
    rows = [json.loads(text_of(record)) for record in filled(ctx, TOPIC) if record.value() is not None]
    return {str(row["id"]): {name: str(value) for name, value in row.items()} for row in rows}


def parsed(line: str) -> Row:
    """Return the fields of a line, which is a row as Java prints it: ``{id=10, name=Diana}``."""
    parts = _NAMED.split(line.strip().removeprefix("{").removesuffix("}"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def written(ctx: CheckContext, sink: str) -> dict[str, Row]:
    """Return the fields of each driver in a sink's file, by id. The last line of an id counts."""
    rows = map(parsed, target_lines(ctx, sink))
    return {row["id"]: row for row in rows if "id" in row}


@check.requires("Both files have a line for each driver, and null for the tombstone", after=sinks_run)
def all_records_pass(ctx: CheckContext) -> None:
    gone = [key_of(record) for record in filled(ctx, TOPIC) if record.value() is None]
    for sink in KEPT:
        lines = target_lines(ctx, sink)
        if missing := [row for number, row in sent(ctx).items() if number not in written(ctx, sink)]:
            raise Unmet(
                f"The file of {sink} has no line with the id of {missing[0].get('name')}. What does `apply` return for a "
                f"record with the fields {', '.join(missing[0])}, and does {sink} leave out records that fail?"
            )
        if gone and "null" not in lines:
            raise Unmet(
                f"{TOPIC} has a tombstone with the key {gone[0]}, and the file of {sink} has no line null. What does `apply` "
                f"return for it, and does {sink} leave out records that fail?"
            )


def masked(phone: str, keep: int) -> str:
    """Return a number of which the last characters stay."""
    stars = max(0, len(phone) - keep)
    return "*" * stars + phone[stars:]


def look_at(ctx: CheckContext, sink: str, question: str) -> None:
    """Raise `Unmet`, with the question, unless a sink's file has each driver with as much of the number as was asked."""
    lines = written(ctx, sink)
    for number, row in sent(ctx).items():
        line, name = lines[number], row.get("name")
        wanted = row | ({FIELD: masked(row[FIELD], KEPT[sink])} if FIELD in row else {})
        if other := [field for field in {**wanted, **line} if field != FIELD and wanted.get(field) != line.get(field)]:
            raise Unmet(f"In the file of {sink}, the field {other[0]} of {name} isn't as in {TOPIC}. What changed it? {_ANEW}")
        if FIELD not in row and FIELD in line:
            raise Unmet(f"In the file of {sink}, {name} has a {FIELD}, and the record has none. What put it there? {_ANEW}")
        if wanted != line:
            raise Unmet(f"The file of {sink} shows {name}'s number as {quoted(line.get(FIELD, ''))}. {question} {_ANEW}")


@check.requires("drivers-office shows the last 4 characters of each number, and all else as it was", after=all_records_pass)
def office_sees_the_end(ctx: CheckContext) -> None:
    look_at(ctx, OFFICE, "Which of its characters should stay, and does each other one have its star?")


@check.requires("drivers-board shows no character of a number, by the setting's default", after=office_sees_the_end)
def board_sees_none(ctx: CheckContext) -> None:
    look_at(ctx, BOARD, f"{BOARD} doesn't set `{SETTING}`. Which value has it then, and does `apply` use it?")


# -- the setting ------------------------------------------------------------------------------------------------------


@check.requires("A worker refuses a `keep` that isn't a whole number from 0 on", after=sinks_run)
def setting_is_declared(ctx: CheckContext) -> None:
    config = config_of(ctx, OFFICE)
    name = f"transforms.{own_link(ctx, OFFICE)}.{SETTING}"

    def errors(value: str) -> list[str]:
        return errors_of(ctx, config | {name: value}).get(name, [])

    if not errors("many"):
        raise Unmet(f"A worker has nothing against `many` for {name}. What does `config` tell it of the setting and its type?")
    if not errors("-1"):
        raise Unmet(f"A worker has nothing against -1 for {name}. What else can `define` say of a setting, beside its type?")
    if said := errors("12"):
        raise Unmet(f"A worker refuses 12 for {name}: {said[0]}. Which numbers should it take?")
