"""A server in a container beside a cluster. It can end and start again with its data."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docker.client import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from kafkalab.cluster.backends.docker_engine import ensure_image, expect_answers
from kafkalab.cluster.ports import HOST
from kafkalab.distribution import Report, announce
from kafkalab.errors import BackendUnavailable, KafkaLabError
from kafkalab.lifeline import RUN_LABEL
from kafkalab.services.server import Server
from kafkalab.waiting import wait_until

__all__ = ["ServerContainer"]

_KILL_SECONDS = 30


class ServerContainer(Server):
    """One container, with one port published on loopback.

    It carries a run's label, so it's removed with the rest of the run, however the run ends.

    Parameters
    ----------
    run
        The run's id.
    port
        Its port on this machine; with 0 any free one.
    """

    def __init__(self, who: str, failure: type[KafkaLabError], run: str, port: int) -> None:
        self._client = DockerClient.from_env()
        expect_answers(self._client)
        super().__init__(who, failure, (port,))
        self._run_id = run
        self._container: Container | None = None

    def create(
        self,
        image: str,
        port: int,
        environment: Mapping[str, str],
        command: Iterable[str] = (),
        networks: Sequence[str] = (),
        report: Report = announce,
    ) -> None:
        """Create it without starting it. Pull the image first if it's missing.

        Parameters
        ----------
        port
            Where the server listens in the container.
        networks
            Networks to join instead of the engine's default. Its port is published through the first.
        report
            Called with the progress of a pull.

        Raises
        ------
        BackendUnavailable
            When the image can't be pulled, or the engine refuses.
        """
        ensure_image(self._client, image, report)
        try:
            self._container = self._client.containers.create(
                image,
                list(command) or None,
                name=f"kafkalab-{self._run_id}-{self.port}",
                labels={RUN_LABEL: self._run_id},
                network=networks[0] if networks else None,
                ports={f"{port}/tcp": (HOST, self.port)},
                environment=dict(environment),
                use_config_proxy=False,  # it talks to nobody outside this machine
            )
            for network in networks[1:]:
                self._client.networks.get(network).connect(self._container)
        except APIError as error:
            raise self._refused("make", error) from error

    def begin(self) -> None:
        """Start it, or start it again with its data after it ended."""
        assert self._container is not None
        self._note_start()
        try:
            self._container.start()
        except APIError as error:
            raise self._refused("start", error) from error

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._container is not None and self._state()["Status"] == "running"

    @property
    def status(self) -> int | None:
        """Its exit status. None before it was started, and while it runs."""
        return None if self._container is None or self.alive else int(self._state()["ExitCode"])

    def _kill(self) -> None:
        if self.alive:
            self._signal(signal.SIGKILL)
            wait_until(lambda: not self.alive, _KILL_SECONDS, f"{self._who} to end")

    def destroy(self) -> None:
        """Remove it with its data, and release its port."""
        if self._container is not None:
            with contextlib.suppress(NotFound):
                self._container.remove(force=True, v=True)
            self._container = None
        super().destroy()
        self._client.close()

    def memory(self) -> int:
        """Return the memory that it uses, in bytes."""
        assert self._container is not None
        return int(self._container.stats(stream=False)["memory_stats"]["usage"])

    def _signal(self, sign: signal.Signals) -> None:
        assert self._container is not None
        with contextlib.suppress(APIError):  # it has ended meanwhile
            self._container.kill(sign.name)

    def _state(self) -> Mapping[str, Any]:
        assert self._container is not None
        state: Mapping[str, Any] = self._client.api.inspect_container(self._container.id)["State"]
        return state

    def _read_logs(self) -> dict[str, str]:
        log = "" if self._container is None else str(self._container.logs(), errors="replace")
        return {"the container's log": log}

    def _refused(self, verb: str, error: APIError) -> BackendUnavailable:
        return BackendUnavailable(f"the Docker engine could not {verb} {self._who}: {error.explanation}")
