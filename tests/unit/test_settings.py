"""How settings are spelled."""

from __future__ import annotations

import pytest

from kafkalab.settings import as_text, dotted, format_properties


def test_values_as_kafka_reads_them() -> None:
    assert as_text({"a": True, "b": 3, "c": "x", "d": 0.5}) == {"a": "true", "b": "3", "c": "x", "d": "0.5"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"a": None}, "the setting a has no value"), ({1: "x"}, "a setting is text like .*, not 1"), ({"": "x"}, "not ''")],
)
def test_settings_that_make_no_sense(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_text(settings)


def test_names_given_as_keyword_arguments() -> None:
    assert dotted({"group_id": "g", "log_level": 3}) == {"group.id": "g", "log_level": 3}


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("a.b", "plain", "a.b=plain"),
        ("a", "back\\slash", "a=back\\\\slash"),
        ("a", "ünï", "a=\\u00fcn\\u00ef"),
        ("a", "🙂", "a=\\ud83d\\ude42"),
        ("a", "one\nprocess.roles=x\r\t", "a=one\\nprocess.roles=x\\r\\t"),
        ("a", " first", "a=\\ first"),
        ("a", "# no comment = x:y", "a=# no comment = x:y"),
        ("a b=c:#", "x", "a\\ b\\=c\\:\\#=x"),
    ],
)
def test_a_line_of_a_properties_file(name: str, value: str, line: str) -> None:
    assert format_properties({name: value}) == line + "\n"
