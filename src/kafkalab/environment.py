"""What this process, and the processes that it starts, take from the environment they find.

An environment holds variables that were meant for other programs: options for every Java on the machine, settings of another
Spark or PostgreSQL, a proxy that knows nothing of servers on loopback. This module is the one place that decides about them.
`settle` prepares this process when `kafkalab` is imported, and `inherited` is the environment of everything it starts.
"""

from __future__ import annotations

import os
import re
import sys

__all__ = [
    "JAVA_OPTIONS",
    "LOCALE",
    "OPTIONS_OF_OTHERS",
    "POSTGRESQL",
    "SPARK",
    "drop_options_of_scripts",
    "forget",
    "inherited",
    "settle",
]

JAVA_OPTIONS = "KAFKALAB_JAVA_OPTIONS"
"""Names the variable with options for every Java that the course starts, except in containers."""

OPTIONS_OF_OTHERS = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "OPENJ9_JAVA_OPTIONS",
    "IBM_JAVA_OPTIONS",
    "_JAVA_LAUNCHER_DEBUG",
)
"""Variables from which every Java takes options. Java also prints a line about most of them."""

# Variables from which Kafka's scripts, and the course's, take options. They count if a cell sets them, not if a shell did.
_OPTIONS_OF_SCRIPTS = ("KAFKA_OPTS", "KAFKA_HEAP_OPTS", "CLASSPATH")

# Log4j 2 takes each of its own settings from a variable, too, in upper and lower case.
_LOG4J = r"(?i:log4j)\w+"
SPARK = r"(PY)?SPARK_\w+"
POSTGRESQL = r"PG[A-Z]+"

# Variables that no child process gets, by the programs that read them.
_NOT_INHERITED = re.compile(
    "|".join(
        (
            *OPTIONS_OF_OTHERS,
            r"JAVA_HOME|JAVA_OPTS|JRE_HOME",
            *_OPTIONS_OF_SCRIPTS,
            r"KAFKA_(JVM_PERFORMANCE|GC_LOG|JMX|LOG4J|LOG4J_CMD)_OPTS|KAFKA_DEBUG|JMX_PORT",
            _LOG4J,
            r"(QUARKUS|SMALLRYE|APICURIO)_\w+",  # the schema registry
            r"ARTEMIS_\w+",  # the MQTT broker
            POSTGRESQL,
            SPARK,
            r"HADOOP_(?!CONF_DIR|USER_NAME)\w+",
            # Variables by which Python finds modules stay: this process needed them, so its children do, too.
            r"PYTHON(WARNINGS|INSPECT|STARTUP|VERBOSE|DEBUG|IOENCODING|OPTIMIZE|BREAKPOINT|TRACEMALLOC|DEVMODE|MALLOC|MALLOCSTATS"
            r"|PROFILEIMPORTTIME|DUMPREFS|ASYNCIODEBUG|EXECUTABLE)",
            r"BASH_ENV|SHELLOPTS|BASHOPTS|CDPATH|GREP_OPTIONS",
        )
    )
)

# A JVM decodes file names by the locale. In the locale "C" it can't open a file whose name isn't ASCII.
LOCALE = {"LC_ALL": "C.UTF-8"} if sys.platform == "linux" else {}
"""The locale of everything that this process starts."""

# A relative path means another place after a change of the working directory, and in a child process.
_PLACES = re.compile(
    r"TMPDIR|TEMP|TMP|KAFKALAB_(CACHE|PROGRESS|WORKSPACE|JAVA_HOME|PREPARING)|XDG_\w+_(HOME|DIR)|PYTHONPATH"
    r"|DOCKER_(CERT_PATH|CONFIG)|SSL_CERT_(FILE|DIR)|SSLKEYLOGFILE|(REQUESTS|CURL)_CA_BUNDLE"
)

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def settle() -> None:
    """Make this process's environment fit for what it starts, and for commands and clients in a notebook's cells.

    This makes paths absolute, exempts loopback from proxies, and drops options for every Java and paths of missing
    certificates. It gives downloads the certificates that Python trusts. Call it again after a cell may have changed the
    environment.
    """
    for name, value in list(os.environ.items()):
        if value and _PLACES.fullmatch(name):
            places = value.split(os.pathsep) if name == "PYTHONPATH" else [value]
            os.environ[name] = os.pathsep.join(map(_absolute, places))
    _reach_loopback_directly()
    _drop_absent_files()
    _share_authorities()
    forget("|".join(OPTIONS_OF_OTHERS))


def drop_options_of_scripts() -> None:
    """Drop options that a shell has set for another Kafka. What a cell sets later counts for the commands in it."""
    forget("|".join((*_OPTIONS_OF_SCRIPTS, _LOG4J)))


def inherited(**more: str) -> dict[str, str]:
    """Return the environment for a process that this one starts.

    On Linux its locale is always ``C.UTF-8``. It uses this process's folder for temporary files.

    Parameters
    ----------
    **more
        Variables to add.
    """
    import tempfile  # only what starts processes needs it

    settle()
    variables = {name: value for name, value in os.environ.items() if not _NOT_INHERITED.fullmatch(name)}
    java_options = {"_JAVA_OPTIONS": os.environ[JAVA_OPTIONS]} if os.environ.get(JAVA_OPTIONS) else {}
    return {**variables, **java_options, **LOCALE, "TMPDIR": tempfile.gettempdir(), **more}


def forget(pattern: str) -> None:
    """Remove the variables whose whole name matches from this process's environment."""
    for name in [name for name in os.environ if re.fullmatch(pattern, name)]:
        del os.environ[name]


def _absolute(place: str) -> str:
    return place if os.path.isabs(place) else os.path.abspath(place)


def _reach_loopback_directly() -> None:
    """If there is a proxy, exempt loopback from it."""
    for name in [name for name in os.environ if name.lower() in _PROXIES]:
        if not _is_supported(os.environ[name]):
            del os.environ[name]
    # Without a variable that names a proxy, Python asks the system for one. With any variable it doesn't.
    if not any(name.lower() in _PROXIES for name in os.environ):
        return
    configured = ",".join(filter(None, (os.environ.get(name) for name in ("no_proxy", "NO_PROXY"))))
    direct = list(dict.fromkeys(entry for entry in map(str.strip, configured.split(",")) if entry))
    if "*" not in direct:
        direct += [host for host in _LOOPBACK if host not in direct]
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(direct)


def _drop_absent_files() -> None:
    """Drop paths that can't be opened: every client with TLS support would fail, even on plain connections."""
    if not os.path.exists(os.environ.get("SSL_CERT_FILE", "/")):
        del os.environ["SSL_CERT_FILE"]
    if not os.access(os.path.dirname(os.path.abspath(os.environ.get("SSLKEYLOGFILE", "/"))), os.W_OK):
        os.environ.pop("SSLKEYLOGFILE", None)


def _share_authorities() -> None:
    """Let downloads of jars trust what uv and Python trust: behind some firewalls, that's an authority of their own."""
    own = {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}  # `requests`, which downloads them, reads no others
    if os.environ.get("SSL_CERT_FILE") and not own & os.environ.keys():
        os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"]


def _is_supported(proxy: str) -> bool:
    """Return whether `SchemaRegistryClient`'s HTTP client supports this proxy. If not, it fails even without using it."""
    scheme = proxy.partition("://")[0].lower()
    if not scheme.startswith("socks"):
        return True
    import importlib.util

    return scheme in ("socks5", "socks5h") and importlib.util.find_spec("socksio") is not None
