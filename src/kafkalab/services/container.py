"""A server in a container beside a cluster. It can end and start again with its data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from docker.client import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from kafkalab.cluster.backends.docker_engine import ensure_image, expect_answers
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.distribution import Report, announce
from kafkalab.errors import BackendUnavailable
from kafkalab.lifeline import RUN_LABEL
from kafkalab.waiting import wait_until

__all__ = ["ServerContainer"]

_END_SECONDS = 30


class ServerContainer:
    """One container, with one port published on loopback.

    It carries a run's label, so it's removed with the rest of the run, however the run ends.

    Parameters
    ----------
    what
        Its name in messages, such as ``the schema registry``.
    run
        The run's id.
    port
        Its port on this machine; with 0 any free one. It's held until `destroy`.

    Raises
    ------
    PortInUse
        When that port is taken.

    Attributes
    ----------
    client
        The engine.
    port
        Its port on this machine.
    """

    def __init__(self, what: str, run: str, port: int) -> None:
        self.client = DockerClient.from_env()
        expect_answers(self.client)
        self._what, self._run_id = what, run
        self._held = reserve_port(port)
        self.port = self._held.port
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
        ensure_image(self.client, image, report)
        try:
            self._container = self.client.containers.create(
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
                self.client.networks.get(network).connect(self._container)
        except APIError as error:
            raise self._refused("make", error) from error

    def start(self) -> None:
        """Start it, or start it again with its data after it ended."""
        assert self._container is not None
        try:
            self._container.start()
        except APIError as error:
            raise self._refused("start", error) from error

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._container is not None and self._status(self._container) == "running"

    @property
    def status(self) -> int | None:
        """Its exit status. None before it was started, and while it runs."""
        if self._container is None or self.running:
            return None
        return int(self.client.api.inspect_container(self._container.id)["State"]["ExitCode"])

    def end(self, sign: str) -> None:
        """Send it a signal such as ``SIGKILL``. On return, it has ended."""
        container = self._container
        if container is not None and self.running:
            container.kill(sign)
            wait_until(lambda: self._status(container) != "running", _END_SECONDS, f"{self._what} to end")

    def destroy(self) -> None:
        """Remove it with its data, and release its port."""
        if self._container is not None:
            with contextlib.suppress(NotFound):
                self._container.remove(force=True, v=True)
        self._held.close()
        self.client.close()

    def logs(self) -> str:
        """Return its log since its first start."""
        return "" if self._container is None else str(self._container.logs(), errors="replace")

    def memory(self) -> int:
        """Return the memory that it uses, in bytes."""
        assert self._container is not None
        return int(self._container.stats(stream=False)["memory_stats"]["usage"])

    def _status(self, container: Container) -> str:
        return str(self.client.api.inspect_container(container.id)["State"]["Status"])

    def _refused(self, verb: str, error: APIError) -> BackendUnavailable:
        return BackendUnavailable(f"the Docker engine could not {verb} {self._what}: {error.explanation}")
