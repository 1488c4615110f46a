"""The registry's REST calls, and a renamed field."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.schemas import ask, avro_bytes, avro_value, client_of, field_names, subject_versions
from kafkalab.checks.wording import counted

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema

__all__ = ["lab"]

SUBJECT = "Employee"
CONFLICT = 409

lab = Lab("06_rest")

rest = lab.add_check(
    "06_rest",
    "Talk to the registry",
    hints=(
        'POST /subjects/Employee/versions takes {"schema": "…"}. The schema is text inside JSON, so json.dumps it twice.',
        'PUT /config and PUT /config/Employee take {"compatibility": "…"}. A level applies to versions that are registered '
        "after you set it. Which of the two calls do you make first?",
        "GET /subjects/Employee/versions/2 answers with subject, version, id and schema.",
    ),
)


@rest.requires("Employee has two versions, and only the second one has the age")
def employee_has_two_versions(ctx: CheckContext) -> None:
    versions = subject_versions(ctx, SUBJECT)
    if len(versions) < 2:
        raise Unmet(f"{SUBJECT} has {counted(len(versions), 'version')}. Which schema do you register second?")
    first, second = (field_names(v.schema.schema_str or "") for v in versions[:2])
    if "age" in first or "age" not in second:
        raise Unmet(
            f"Version 1 has the fields {', '.join(first)}; version 2 has {', '.join(second)}. In which order did you "
            "register them?"
        )


@rest.requires("The same schema has the same id under Employee2", after=employee_has_two_versions)
def one_schema_has_one_id(ctx: CheckContext) -> None:
    other = subject_versions(ctx, "Employee2")
    if other[0].schema_id != subject_versions(ctx, SUBJECT)[0].schema_id:
        raise Unmet("Version 1 of Employee2 has another id than version 1 of Employee, so its schema isn't the same.")


@rest.requires("The level is NONE for all subjects and BACKWARD for Employee", after=employee_has_two_versions)
def levels_are_set(ctx: CheckContext) -> None:
    client = client_of(ctx)
    everywhere, own = ask(client.get_compatibility), ask(client.get_compatibility, SUBJECT)
    if everywhere != "NONE":
        raise Unmet(f"The level for all subjects is {everywhere}.")
    # With some servers, the level alone doesn't show whether it belongs to the subject.
    if own != "BACKWARD" or ask(client.test_compatibility, SUBJECT, _unreadable()):
        raise Unmet(f"{SUBJECT} accepts a schema that BACKWARD rejects. Does the subject have a level of its own?")


def _unreadable() -> Schema:
    """Return a schema that can't read what any other one wrote."""
    from confluent_kafka.schema_registry import Schema

    field = {"name": "unheardOf", "type": "string"}
    text = {"type": "record", "name": SUBJECT, "namespace": "com.cloudurable.phonebook", "fields": [field]}
    return Schema(json.dumps(text), "AVRO")


@rest.requires("You know the id of version 2", after=employee_has_two_versions)
def id_is_known(ctx: CheckContext) -> None:
    given = ctx.answer("id_of_version_2", int, "the id that the registry gives version 2 of Employee")
    if given != subject_versions(ctx, SUBJECT)[1].schema_id:
        raise Unmet(f"{given} isn't the id of version 2. A version counts within its subject; an id is the registry's own.")


evolution = lab.add_check(
    "06_evolution",
    "Rename a field, and be rejected",
    hints=(
        "When the registry rejects a POST, the client raises SchemaRegistryError, which has http_status_code. "
        "curl prints it with -o /dev/null -w '%{http_code}'.",
        "client.test_compatibility(subject, schema) asks, and so does POST /compatibility/subjects/Employee/versions/latest.",
        'A field can list other names for itself: "aliases": ["firstName"]. The reader uses them.',
    ),
)


@evolution.requires("The registry rejected the renamed schema")
def renamed_schema_was_rejected(ctx: CheckContext) -> None:
    for version in subject_versions(ctx, SUBJECT):
        fields = {f["name"]: f.get("aliases", []) for f in json.loads(version.schema.schema_str or "")["fields"]}
        if "fName" in fields and "firstName" not in fields["fName"]:
            raise Unmet(
                f"Version {version.version} has a field fName that doesn't say what it was called before, so the registry "
                "accepted it. Delete that version, and look at the level of Employee."
            )
    status = ctx.answer("refused", int, "the HTTP status of the POST with the renamed schema")
    if status != CONFLICT:
        raise Unmet(f"A registry doesn't answer {status} to an incompatible schema. Which level does Employee have?")
    what = "what the compatibility test says about the renamed schema"
    shown = re.search(r"is_compatible\W+(true|false)", str(ctx.answer("compatible", object, what)), re.IGNORECASE)
    if shown[1].lower() == "true" if shown else ctx.answer("compatible", bool, what):
        raise Unmet("`compatible` is True, but the registry finds the renamed schema incompatible. What did you test?")


@evolution.requires("The latest version has the new names and reads what version 1 wrote", after=renamed_schema_was_rejected)
def new_names_read_old_records(ctx: CheckContext) -> None:
    versions = subject_versions(ctx, SUBJECT)
    names = field_names(versions[-1].schema.schema_str or "")
    if not {"fName", "lName"} <= set(names):
        raise Unmet(f"The latest version of {SUBJECT} has the fields {', '.join(names)}.")
    written = avro_bytes(versions[0].schema, {"firstName": "Bob", "lastName": "Jones"})
    seen = avro_value(versions[0].schema, written, json.loads(versions[-1].schema.schema_str or ""))
    if (seen.get("fName"), seen.get("lName")) != ("Bob", "Jones"):
        raise Unmet(
            f"Version 1 wrote Bob Jones. The latest version reads fName={seen.get('fName')!r}, lName={seen.get('lName')!r}."
        )
