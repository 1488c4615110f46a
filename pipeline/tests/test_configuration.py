"""The file of settings: the example has all of them, and mistakes are named before anything starts."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from truck_pipeline.__main__ import main
from truck_pipeline.configuration import Configuration, SettingsRefused, read
from truck_pipeline.settings import Settings

EXAMPLE = Path(__file__).parents[1] / "pipeline.toml"
VARIABLES = {"PIPELINE_DATABASE": "postgresql://me:secret@here/db", "REGISTRY_PASSWORD": "quiet", "KAFKA_PASSWORD": 'quo"ted'}
SMALLEST = """
[kafka]
bootstrap.servers = "a:1"
[registry]
url = "http://b"
[checkpoint]
folder = "c"
"""


def refused(tmp_path: Path, text: str, *needs: str) -> list[str]:
    """What is said about a file."""
    (file := tmp_path / "pipeline.toml").write_text(text)
    with pytest.raises(SettingsRefused) as refusal:
        read(file, VARIABLES, needs)
    return str(refusal.value).replace(f"{file}: ", "").splitlines()


def test_the_example_has_the_defaults() -> None:
    settings = read(EXAMPLE, VARIABLES, ("database", "lake"))[0].settings
    places = ("kafka", "registry", "checkpoint", "database")
    defaults = Settings({"kafka.bootstrap.servers": "kafka:9092"}, "http://registry:8081", VARIABLES["PIPELINE_DATABASE"], "")
    assert settings == dataclasses.replace(defaults, **{name: getattr(settings, name) for name in places})


def test_the_example_has_every_setting_with_a_comment(tmp_path: Path) -> None:
    text = re.sub(r"^# (?=[\w.]+ = )", "", EXAMPLE.read_text(), flags=re.MULTILINE)
    (whole := tmp_path / "pipeline.toml").write_text(text)
    configuration, secrets = read(whole, VARIABLES, ("database", "lake"))
    found = tomllib.loads(text)
    assert found.keys() == Configuration.model_fields.keys()
    for name, value in found.items():
        if fields := getattr(type(getattr(configuration, name)), "model_fields", {}):
            assert value.keys() == {field.alias or key for key, field in fields.items()}, name
    without = [line for line in text.splitlines() if re.match(r"[\w.]+ = ", line) and "  # " not in line]
    assert [line.partition(" = ")[0] for line in without] == ["security.protocol", "sasl.mechanism", "sasl.jaas.config"]
    settings = configuration.settings
    assert settings.kafka["kafka.security.protocol"] == "SASL_SSL"
    assert settings.registry_settings == {"basic.auth.user.info": "pipeline:quiet", "ssl.ca.location": "/etc/pipeline/ca.pem"}
    assert secrets == {*VARIABLES.values(), "secret"}
    assert not [secret for secret in secrets if secret in repr(configuration) or secret in repr(settings)]


def test_each_setting_of_the_pipeline_comes_from_the_file(tmp_path: Path) -> None:
    text = (
        SMALLEST
        + "[topics]\npositions = 'p'\ndrivers = 'd'\ndangerous = 'x'\ndead_letters = 'l'\nearly = 'e'\n[database]\nschema = 's'\nkeep = '8 days'\n"
    )
    text += "[lake]\nfolder = 'l'\n[metrics]\nport = 0"
    lengths = {name: f"{number} seconds" for number, name in enumerate(("patience", "ahead", "window", "trigger"), 3)}
    times = {"refresh": "7 seconds", "wait": "500 milliseconds"}
    top = "".join(f"{name} = '{length}'\n" for name, length in {**lengths, **times}.items())
    (file := tmp_path / "pipeline.toml").write_text(f"most = 5\n{top}{text}")
    settings = read(file, VARIABLES)[0].settings
    wanted = Settings(
        {"kafka.bootstrap.servers": "a:1"}, "http://b", VARIABLES["PIPELINE_DATABASE"], "c", "s", "p", "d", "x", "l", "e", **lengths,
        most=5, keep="8 days", refresh=7, wait=0.5,
    )  # fmt: skip
    assert settings == wanted
    same = [name for name, value in vars(Settings({}, "", "", "")).items() if value == getattr(settings, name)]
    assert same == ["registry_settings"]  # the example's test has it


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("patince = '1 minute'", "there is no setting patince; is patience meant?"),
        ("positions = 'p'", "there is no setting positions; is topics.positions meant?"),
        ("zzz = 1", "there is no setting zzz"),
        ("most = 'many'", "most: this must be a whole number"),
        ("most = 0", "most: Input should be greater than or equal to 1"),
        ("window = 60", "window: this must be text in quotation marks"),
        ("window = '0 minutes'", "window: '0 minutes' is no time at all: give a longer one"),
        (
            "trigger = '1 month'",
            "trigger: '1 month' isn't a length of time: give a number and millisecond, second, minute, hour, day, such as '5 minutes'",
        ),
        ("topics = 'p'", "topics: this must be a table"),
        ("database.schema = ''", "database.schema: String should have at least 1 character"),
        ("metrics.port = 65536", "metrics.port: Input should be less than or equal to 65535"),
        (
            "database.url = '${PIPELINE_DATABSE}'",
            "the environment variable PIPELINE_DATABSE isn't set, and the settings refer to it",
        ),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    [found] = refused(tmp_path, f"{text}\n{SMALLEST}")
    assert found == said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("bootstrap.servers", "bootstrap.server", "kafka: bootstrap.servers is missing; is it meant by bootstrap.server?"),
        ("'a:1'", "['a:1']", "kafka: bootstrap.servers must be text, a number, true or false"),
        ("url = 'http://b'", "", "registry.url is missing"),
        ("http://b", "b:8081", "registry.url: 'b:8081' isn't a URL such as 'http://registry:8081'"),
        (
            "http://b",
            "http://me:secret@b",
            "registry.url: holds a name or a password: give registry.user and registry.password",
        ),
        ("url =", "user = 'me'\nurl =", "registry: give both user and password, or neither"),
        ("folder = 'c'", "", "checkpoint.folder is missing"),
    ],
)
def test_what_has_no_default(tmp_path: Path, before: str, after: str, said: str) -> None:
    [found] = refused(tmp_path, SMALLEST.replace('"', "'").replace(before, after))
    assert found.startswith(said) and "secret" not in found


def test_all_mistakes_are_told_at_once_and_no_secret(tmp_path: Path) -> None:
    found = refused(tmp_path, "window = '${REGISTRY_PASSWORD}'\nmost = true\n" + SMALLEST, "lake")
    assert [line.partition(":")[0] for line in found] == ["window", "most", "lake.folder is missing"]
    assert not [line for line in found if VARIABLES["REGISTRY_PASSWORD"] in line]


def test_who_deletes_old_rows_says_how_old(tmp_path: Path) -> None:
    assert refused(tmp_path, SMALLEST, "database", "keep") == ["database.keep is missing"]
    assert "no time at all" in refused(tmp_path, SMALLEST + "[database]\nkeep = '0 days'", "database", "keep")[0]
    assert refused(tmp_path, "database = 5" + SMALLEST, "keep")[0].startswith("database: this must be a table")


def test_only_who_needs_the_database_has_to_name_it(tmp_path: Path) -> None:
    (file := tmp_path / "pipeline.toml").write_text(SMALLEST)
    assert read(file, {})[0].settings.database == ""
    with pytest.raises(SettingsRefused, match="PIPELINE_DATABASE isn't set"):
        read(file, {}, ("database",))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match="can't be read: No such file or directory"):
        read(tmp_path / "nowhere.toml", {})
    assert "isn't TOML: Invalid value" in refused(tmp_path, "window = ")[0]


def test_the_command_refuses_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPELINE_DATABASE", "postgresql://here/db")
    monkeypatch.setattr("truck_pipeline.commands.start_session", lambda *_: pytest.fail("it was started"))
    (file := tmp_path / "pipeline.toml").write_text("mst = 1\n" + SMALLEST)
    for arguments in (["run", "--settings", str(file)], ["stream"], []):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"truck-pipeline: {file}: there is no setting mst; is most meant?\n")
