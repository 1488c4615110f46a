"""Read ``pipeline.toml``, and check all of it before anything starts."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from truck_pipeline.durations import milliseconds
from truck_pipeline.settings import Settings

__all__ = ["DATABASE", "Configuration", "SettingsRefused", "read"]

DATABASE = "PIPELINE_DATABASE"
"""The environment variable with the database's URL, unless the file says otherwise."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SERVERS = "bootstrap.servers"


class SettingsRefused(Exception):
    """Raised if settings can't be used. Each line of the message is a sentence about one of them."""


def _length(text: str) -> str:
    milliseconds(text)
    return text


def _positive(text: str) -> str:
    if not milliseconds(text):
        raise ValueError(f"{text!r} is no time at all: give a longer one")
    return text


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.username or parts.password:  # the URL stands in messages
        raise ValueError("holds a name or a password: give registry.user and registry.password instead")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} isn't a URL such as 'http://registry:8081'")
    return url


def _flat(table: object) -> object:
    """Join names that TOML takes for tables in tables: ``bootstrap.servers`` is one name of Kafka's."""
    return dict(_names(table)) if isinstance(table, dict) else table


def _names(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        match value:
            case dict():
                yield from _names(value, f"{before}{name}.")
            case bool():
                yield before + name, str(value).lower()
            case str() | int() | float():
                yield before + name, str(value)
            case _:
                raise ValueError(f"{before}{name} must be text, a number, true or false")


def _with_servers(client: dict[str, str]) -> dict[str, str]:
    if _SERVERS not in client:
        raise ValueError(f"{_SERVERS} is missing{_suggestion(_SERVERS, client, 'is it meant by {}')}")
    return client


Length = Annotated[str, AfterValidator(_length)]
LongerThanNothing = Annotated[str, AfterValidator(_positive)]
Client = Annotated[dict[str, str], BeforeValidator(_flat), AfterValidator(_with_servers), Field(repr=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Topics(_Table):
    positions: str = Settings.positions
    drivers: str = Settings.drivers
    dangerous: str = Settings.dangerous
    dead_letters: str = Settings.dead_letters
    early: str = Settings.early


class _Registry(_Table):
    url: Annotated[str, AfterValidator(_address)]
    user: str | None = None
    password: Annotated[str | None, Field(repr=False)] = None
    ca: str | None = None

    @model_validator(mode="after")
    def _both_or_none(self) -> _Registry:
        if (self.user is None) != (self.password is None):
            raise ValueError("give both user and password, or neither")
        return self


class _Database(_Table):
    url: str = Field(repr=False)
    tables: str = Field(Settings.schema, min_length=1, alias="schema")  # pydantic has a method of that name
    keep: LongerThanNothing | None = None


class _Checkpoint(_Table):
    folder: str


class _Lake(_Table):
    folder: str


class _Metrics(_Table):
    address: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 9464
    silence: LongerThanNothing = "5 minutes"


class Configuration(_Table):
    """What a file of settings says.

    Attributes
    ----------
    settings
        Those of the pipeline and the lake.
    lake
        The lake's `folder`; None if the file has none.
    metrics
        `address` and `port` of the endpoint for metrics and health, and the `silence` after which the stream counts as dead.
    """

    window: LongerThanNothing = Settings.window
    patience: Length = Settings.patience
    ahead: Length = Settings.ahead
    trigger: Length = Settings.trigger
    most: Annotated[int, Field(ge=1)] = Settings.most
    refresh: Length = "1 minute"
    wait: Length = "1 minute"
    topics: _Topics = _Topics()
    kafka: Client
    registry: _Registry
    database: _Database
    checkpoint: _Checkpoint
    lake: _Lake | None = None
    metrics: _Metrics = _Metrics()

    @property
    def settings(self) -> Settings:
        """The settings of the pipeline and the lake."""
        registry = {"ssl.ca.location": self.registry.ca} if self.registry.ca else {}
        if self.registry.user is not None:
            registry["basic.auth.user.info"] = f"{self.registry.user}:{self.registry.password}"
        return Settings(
            kafka={f"kafka.{name}": value for name, value in self.kafka.items()},
            registry=self.registry.url,
            registry_settings=registry,
            database=self.database.url,
            schema=self.database.tables,
            keep=self.database.keep,
            checkpoint=self.checkpoint.folder,
            refresh=milliseconds(self.refresh) / 1000,
            wait=milliseconds(self.wait) / 1000,
            **{name: getattr(self, name) for name in ("patience", "ahead", "window", "trigger", "most")},
            **self.topics.model_dump(),
        )


def read(path: Path, environ: Mapping[str, str], needs: Collection[str] = ()) -> tuple[Configuration, set[str]]:
    """Read a file of settings. Replace each ``${NAME}`` in it by that environment variable.

    Parameters
    ----------
    path
        A file in TOML, such as ``pipeline.toml``.
    environ
        The environment variables.
    needs
        Which of ``database``, ``lake`` and ``keep`` the command needs. Without need, the database's URL may be unset.

    Returns
    -------
    tuple
        The settings, and what must not be logged: the values of the variables, and the database's password.

    Raises
    ------
    SettingsRefused
        When the file can't be read or a setting can't be used. The message holds no value of a variable.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsRefused(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsRefused(f"{path} isn't TOML: {error}") from None
    if isinstance(database := found.setdefault("database", {}), dict):
        database.setdefault("url", f"${{{DATABASE}}}")
    variables = dict(environ)
    if "database" not in needs:
        variables.setdefault(DATABASE, "")
    used: set[str] = set()
    filled, problems = _filled(found, variables, used), []
    problems += [
        f"the environment variable {name} isn't set, and the settings refer to it" for name in sorted(used - variables.keys())
    ]
    try:
        configuration = Configuration.model_validate(filled)
    except ValidationError as error:
        problems += [_sentence(problem, path) for problem in error.errors(include_url=False, include_input=False)]
    if "lake" in needs and "lake" not in found:
        problems.append(f"{path}: lake.folder is missing")
    if "keep" in needs and isinstance(database, dict) and "keep" not in database:
        problems.append(f"{path}: database.keep is missing")
    secrets = {variables[name] for name in used & variables.keys()}
    if problems:
        raise SettingsRefused(_without("\n".join(problems), secrets))
    return configuration, {secret for secret in {*secrets, _password(configuration.database.url)} if secret}


def _filled(value: Any, variables: Mapping[str, str], used: set[str]) -> Any:
    """Replace references to variables. One that isn't set stays."""

    def variable(reference: re.Match[str]) -> str:
        used.add(reference[1])
        return variables.get(reference[1], reference[0])

    match value:
        case str():
            return _REFERENCE.sub(variable, value)
        case dict():
            return {name: _filled(inner, variables, used) for name, inner in value.items()}
    return value


def _sentence(problem: Any, path: Path) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    match problem["type"]:
        case "extra_forbidden":
            return f"{path}: there is no setting {name}{_suggestion(name, _all_names(Configuration), 'is {} meant')}"
        case "missing":
            return f"{path}: {name} is missing"
        case "value_error":
            return f"{path}: {name}: {problem['ctx']['error']}"
    return f"{path}: {name}: {_WHAT.get(problem['type'], problem['msg'])}"


_WHAT = {
    "int_type": "this must be a whole number",
    "string_type": "this must be text in quotation marks",
    "model_type": "this must be a table",
    "dict_type": "this must be a table",
}


def _suggestion(name: str, names: Collection[str], question: str) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"; {question.format(near[0])}?" if near else ""


def _all_names(table: type[BaseModel], before: str = "") -> list[str]:
    names = []
    for attribute, field in table.model_fields.items():
        name = before + (field.alias or attribute)
        inner = [one for one in (field.annotation, *getattr(field.annotation, "__args__", ())) if isinstance(one, type)]
        tables = [one for one in inner if issubclass(one, _Table)]
        names += _all_names(tables[0], f"{name}.") if tables else [name]
    return names


def _password(database: str) -> str:
    return str(conninfo_to_dict(database).get("password") or "")


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "…")
    return text
