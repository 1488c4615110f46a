"""A Spark Connect session: Spark runs on a server, and this process has no JVM."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException, PySparkValueError
from pyspark.sql import SparkSession, is_remote

from kafkalab.errors import SparkFailed
from kafkalab.spark.masters import Master, reach, without_secrets

__all__ = ["address_of", "remote_session", "start_remote"]

_SECONDS = 5.0  # to wait for a server's first answer
_RETRIES = 5  # of a call to a server that is gone: about 15 s; PySpark's default takes ten minutes


def remote_session() -> Any:
    """Return this process's Spark Connect session, or None. Give up a session whose server is gone."""
    if not is_remote():
        return None
    from pyspark.sql.connect.session import SparkSession as RemoteSession  # takes a second

    session = RemoteSession._get_default_session()
    if session is not None:
        try:
            reach(address_of(session))
        except SparkFailed:
            session.release_session_on_close = False  # no server can release it
            session.stop()
            return None
    return session


def address_of(session: Any) -> str:
    """Return the address of a session's server."""
    return f"sc://{session.client._builder.endpoint}"


def start_remote(name: str, master: Master, settings: Mapping[str, str]) -> Any:
    """Start a session on a Spark Connect server. It ends with this process.

    It can't change a setting that the server has for all sessions. A warning says so.

    Raises
    ------
    SparkFailed
        If a different kind of server listens there, or the server refuses the session.
    """
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy

    place = without_secrets(master.url)
    try:
        with DefaultChannelBuilder(master.url).toChannel() as channel:
            grpc.channel_ready_future(channel).result(_SECONDS)
        session: Any = SparkSession.builder.remote(master.url).appName(name).config(map=dict(settings)).getOrCreate()
    except grpc.FutureTimeoutError:
        raise SparkFailed(
            f"something listens at {place}, but it doesn't speak Spark Connect. Is that the server's address? If it has "
            ";use_ssl=true or a token, the server must speak TLS, and otherwise it must not."
        ) from None
    except PySparkValueError:  # its text would show a token
        raise SparkFailed(f"{place} has to be followed by parameters as in /;name=value;name=value, with %3D for a =") from None
    except PySparkException as error:
        raise SparkFailed(f"the Spark Connect server at {place} refuses a session: {str(error).splitlines()[0]}") from error
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    atexit.register(_end, session)
    return session


def _end(session: Any) -> None:
    if session is remote_session():
        session.stop()
