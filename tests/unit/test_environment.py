"""What this process and its children take from the environment they find."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import requests
from confluent_kafka.schema_registry import SchemaRegistryClient

from kafkalab.environment import JAVA_OPTIONS, OPTIONS_OF_OTHERS, inherited, settle
from kafkalab.paths import cache_dir

NOBODY = "http://127.0.0.1:1"
LOOPBACK = "localhost,127.0.0.1,::1"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment of the test's own, without proxies."""
    without = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    monkeypatch.setattr(os, "environ", without)


@pytest.mark.parametrize(
    "name",
    [
        *OPTIONS_OF_OTHERS, "JAVA_HOME", "CLASSPATH", "KAFKA_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_JMX_OPTS", "KAFKA_LOG4J_OPTS", "JMX_PORT",
        "LOG4J_LEVEL", "LOG4J2_DEBUG", "log4j2_debug", "QUARKUS_HTTP_PORT", "APICURIO_STORAGE_KIND", "PGHOST", "PGDATA", "SPARK_HOME",
        "SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS", "HADOOP_HOME", "HADOOP_TOKEN_FILE_LOCATION", "PYTHONWARNINGS",
        "PYTHONINSPECT", "PYTHONSTARTUP", "PYTHONIOENCODING", "BASH_ENV", "SHELLOPTS", "CDPATH", "GREP_OPTIONS",
    ],
)  # fmt: skip
def test_not_inherited(name: str) -> None:
    os.environ[name] = "nonsense"
    assert name not in inherited()


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "LANG", "TZ", "KAFKALAB_BACKEND", "DOCKER_HOST", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "HADOOP_USER_NAME",
        "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "VIRTUAL_ENV", "STOCKS_BOOK", "DB_PASSWORD",
        "KAFKA_PASSWORD", "KAFKA_BOOTSTRAP_SERVERS", "PAGER", "LD_LIBRARY_PATH", "SSL_CERT_DIR", "KRB5CCNAME",
    ],
)  # fmt: skip
def test_inherited(name: str) -> None:
    os.environ[name] = "/own"
    assert inherited()[name] == "/own"


def test_own_options_reach_every_java() -> None:
    os.environ |= {JAVA_OPTIONS: "-Dmine=1", "_JAVA_OPTIONS": "-Dtheirs=1"}
    assert inherited()["_JAVA_OPTIONS"] == "-Dmine=1"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a JVM knows other ways to name a file")
def test_children_can_name_every_file() -> None:
    os.environ["LC_ALL"] = "C"
    assert inherited()["LC_ALL"] == "C.UTF-8"


@pytest.mark.parametrize(
    ("given", "direct"),
    [
        ({"http_proxy": NOBODY}, LOOPBACK),
        ({"HTTPS_PROXY": NOBODY, "NO_PROXY": "a.test, .b.test"}, f"a.test,.b.test,{LOOPBACK}"),
        ({"ALL_PROXY": NOBODY, "NO_PROXY": "a.test", "no_proxy": "127.0.0.1"}, "127.0.0.1,a.test,localhost,::1"),
        ({"http_proxy": NOBODY, "no_proxy": "*"}, "*"),
        ({"NO_PROXY": "a.test"}, None),  # without a proxy nothing changes: any variable would hide the system's own
        ({}, None),
        ({"all_proxy": "socks4://127.0.0.1:1"}, None),
    ],
)
def test_loopback_is_never_proxied(given: dict[str, str], direct: str | None) -> None:
    os.environ |= given
    settle()
    settle()
    if direct is None:
        assert os.environ.get("no_proxy") is None and os.environ.get("NO_PROXY") == given.get("NO_PROXY")
    else:
        assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == direct


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSLKEYLOGFILE"])
def test_without_a_named_file_a_registry_s_client_can_be_made(name: str, tmp_path: Path) -> None:
    os.environ[name] = str(tmp_path / "nowhere" / "file")
    settle()
    SchemaRegistryClient({"url": "http://127.0.0.1:1"})
    (tmp_path / "file").touch()
    os.environ[name] = str(tmp_path / "file")
    settle()
    assert os.environ[name] == str(tmp_path / "file")


@pytest.mark.parametrize("named", [{}, {"CURL_CA_BUNDLE": "/of-curl.pem"}, {"REQUESTS_CA_BUNDLE": "/of-requests.pem"}])
def test_downloads_trust_what_python_trusts(named: dict[str, str], tmp_path: Path) -> None:
    authorities = tmp_path / "authorities.pem"
    authorities.touch()
    for name in ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        os.environ.pop(name, None)
    os.environ |= {**named, "SSL_CERT_FILE": str(authorities)}
    settle()
    session = requests.Session()
    verify = session.merge_environment_settings("https://kafka.example", {}, None, None, None)["verify"]
    assert verify == next(iter(named.values()), str(authorities))


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("proxy", [NOBODY, "127.0.0.1:1", "socks5://127.0.0.1:1", "socks4://127.0.0.1:1"])
def test_with_any_proxy_a_registry_s_client_can_be_made(name: str, proxy: str) -> None:
    os.environ[name] = proxy
    settle()
    SchemaRegistryClient({"url": "http://127.0.0.1:1"})


@pytest.mark.parametrize(
    "name",
    [
        "TMPDIR",
        "KAFKALAB_CACHE",
        "KAFKALAB_PROGRESS",
        "KAFKALAB_WORKSPACE",
        "KAFKALAB_JAVA_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "PYTHONPATH",
        "DOCKER_CERT_PATH",
        "SSL_CERT_DIR",
    ],
)
def test_a_place_is_the_same_after_a_change_of_the_working_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.environ[name] = "mine"
    settle()
    monkeypatch.chdir("/")
    settle()
    assert os.environ[name] == str(tmp_path / "mine")


def test_all_places_of_python_s_path_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr")
    os.environ["PYTHONPATH"] = "lib:/opt:"
    os.environ["TMPDIR"] = "/a:b"
    settle()
    assert os.environ["PYTHONPATH"] == "/usr/lib:/opt:/usr" and os.environ["TMPDIR"] == "/a:b"


def test_children_have_this_process_s_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    os.environ["TMPDIR"] = "/nowhere"
    assert inherited()["TMPDIR"] == str(tmp_path)


def test_on_import_options_from_outside_are_dropped_and_later_ones_count() -> None:
    code = """
import os, kafkalab
print(*(name for name in ("KAFKA_OPTS", "CLASSPATH", "JAVA_TOOL_OPTIONS") if name in os.environ))
os.environ["KAFKA_OPTS"] = "-Dmine=1"
kafkalab.environment.settle()
print(os.environ["KAFKA_OPTS"])
"""
    foreign = {"KAFKA_OPTS": "-Dtheirs=1", "CLASSPATH": "/nowhere", "JAVA_TOOL_OPTIONS": "-Dtheirs=1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ) | foreign, check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["", "-Dmine=1"]


def test_everything_can_be_imported_where_warnings_are_errors() -> None:
    code = "import kafkalab; [getattr(kafkalab, name) for name in kafkalab.__all__]"
    subprocess.run([sys.executable, "-c", code], env=dict(os.environ) | {"PYTHONWARNINGS": "error"}, check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a JVM knows other ways to name a file")
def test_java_in_python_can_name_every_file(tmp_path: Path) -> None:
    """In the locale "C" a JVM in this process can't read a jar in such a folder, and doesn't even start."""
    cache = tmp_path / "ünï's"
    cache.symlink_to(cache_dir())
    code = "import os; from kafkalab.streams.java import use_java; use_java(); print(os.environ['LC_ALL'])"
    environment = dict(os.environ) | {"KAFKALAB_CACHE": str(cache), "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "C\n"
