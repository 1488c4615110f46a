"""Talking to the registry, and a renamed field: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import pytest

from schema_support import AGE, V1, V2, Registered, avro, record
from support import Verdict

pytestmark = pytest.mark.cluster

REST, EVOLUTION = "06_rest", "06_evolution"

RENAMED = record("fName", "lName", AGE)
WITH_ALIASES = record(
    {"name": "fName", "type": "string", "aliases": ["firstName"]},
    {"name": "lName", "type": "string", "aliases": ["lastName"]},
    AGE,
)


def test_rest(registered: Registered, verdict: Verdict) -> None:
    cluster, client, given = registered.cluster, registered.client, {"registry": registered.registry}
    verdict.says("Give check() your answer as registry=", REST, cluster)
    verdict.says("`registry` should be a SchemaRegistry, not text", REST, cluster, registry=registered.registry.url)
    passed, printed = verdict(REST, cluster, **given)
    assert not passed
    assert "There is no subject 'Employee' yet. The registry's subjects: none." in printed
    assert printed.count("Not looked at yet") == 3
    client.register_schema("Employee", avro(V1))
    verdict.says("Employee has 1 version", REST, cluster, **given)
    client.register_schema("Employee", avro(V2))
    client.register_schema("Employee2", avro(V2))
    second = client.get_version("Employee", 2).schema_id
    verdict.says("Version 1 of Employee2 has another id", REST, cluster, **given, id_of_version_2=second)
    registered.forget("Employee2")
    client.register_schema("Employee2", avro(V1))
    verdict.says("The level for all subjects is BACKWARD", REST, cluster, **given, id_of_version_2=second)
    client.set_compatibility(level="NONE")
    verdict.says("Does the subject have a level of its own?", REST, cluster, **given, id_of_version_2=second)
    client.set_compatibility("Employee", "BACKWARD")
    verdict.passes(REST, cluster, **given, id_of_version_2=second)
    verdict.says("isn't the id of version 2", REST, cluster, **given, id_of_version_2=second + 100)
    verdict.says("Give check() your answer as id_of_version_2=", REST, cluster, **given)


def test_versions_in_the_wrong_order(registered: Registered, verdict: Verdict) -> None:
    for schema in (V2, V1):
        registered.client.register_schema("Employee", avro(schema))
    verdict.says("In which order did you register them?", REST, registered.cluster, registry=registered.registry)


def test_evolution(registered: Registered, verdict: Verdict) -> None:
    cluster, client = registered.cluster, registered.client
    given = {"registry": registered.registry, "refused": 409, "compatible": False}
    for schema in (V1, V2):
        client.register_schema("Employee", avro(schema))
    verdict.says("The latest version of Employee has the fields firstName, lastName, age", EVOLUTION, cluster, **given)
    passed, printed = verdict(EVOLUTION, cluster, registry=registered.registry)
    assert not passed
    assert "Give check() your answer as refused=" in printed
    assert "Not looked at yet. First: The registry rejected the renamed schema." in printed
    verdict.says("doesn't answer 200 to an incompatible schema", EVOLUTION, cluster, **{**given, "refused": 200})
    verdict.says("`compatible` is True", EVOLUTION, cluster, **{**given, "compatible": True})
    verdict.says("`compatible` is still None", EVOLUTION, cluster, **{**given, "compatible": None})
    client.register_schema("Employee", avro(WITH_ALIASES))
    verdict.passes(EVOLUTION, cluster, **given)
    curl = ['{"is_compatible":false}']  # a list, as `!curl` gives one
    verdict.passes(EVOLUTION, cluster, **{**given, "refused": ["409"], "compatible": curl})
    verdict.passes(EVOLUTION, cluster, **{**given, "compatible": {"is_compatible": False}})
    verdict.says("`compatible` is True", EVOLUTION, cluster, **{**given, "compatible": ['{"is_compatible":true}']})


def test_new_names_that_were_forced(registered: Registered, verdict: Verdict) -> None:
    registered.client.register_schema("Employee", avro(V1))
    registered.client.set_compatibility("Employee", "NONE")
    registered.client.register_schema("Employee", avro(RENAMED))
    given = {"registry": registered.registry, "refused": 409, "compatible": False}
    verdict.says("doesn't say what it was called before", EVOLUTION, registered.cluster, **given)


def test_new_names_by_default(registered: Registered, verdict: Verdict) -> None:
    """A default makes the registry accept new names, but nobody is called so any more."""
    names = (("fName", "firstName"), ("lName", "name"))
    emptied = record(*({"name": new, "type": "string", "default": "", "aliases": [old]} for new, old in names))
    for schema in (V1, emptied):
        registered.client.register_schema("Employee", avro(schema))
    given = {"registry": registered.registry, "refused": 409, "compatible": False}
    verdict.says("The latest version reads fName='Bob', lName=''", EVOLUTION, registered.cluster, **given)


def test_a_registry_that_was_killed(registered: Registered, verdict: Verdict) -> None:
    registered.registry.kill()
    verdict.says("The registry doesn't answer. Is it running?", REST, registered.cluster, registry=registered.registry)
    registered.registry.restart()
