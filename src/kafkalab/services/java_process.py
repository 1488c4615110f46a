"""A Java program of Kafka's, or one that logs as Kafka does, as a process of a run."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalab.conditions import require, runs_executable
from kafkalab.distribution import JVM_OPTIONS, NODE_LOG_SETTINGS, archive_options, java_command
from kafkalab.errors import KafkaLabError
from kafkalab.lifeline import Run
from kafkalab.services.server import ServerProcess

__all__ = ["JavaProcess"]


class JavaProcess(ServerProcess):
    """A Java program. It has two logs: ``<name>.log`` by log4j, and ``<name>-output.log`` for all else."""

    def __init__(self, run: Run, name: str, who: str, failure: type[KafkaLabError], *, ports: Sequence[int] = ()) -> None:
        super().__init__(run, name, who, failure, ports=ports)
        self._files = (*self._files, self.folder / f"{name}-output.log")

    def run_java(self, heap: str, classes: str, main: str, arguments: Sequence[str]) -> None:
        """Start the program, without waiting until it's ready.

        Parameters
        ----------
        heap
            Java heap, as in ``-Xmx``.
        classes
            A class path. If it begins with that of brokers and tools, Java can use their class-data archive.
        main, arguments
            The main class, and its arguments.
        """
        require(runs_executable)
        self.launch(
            [str(java_command()), f"-Xmx{heap}", *JVM_OPTIONS, *archive_options(),
             f"-Djava.io.tmpdir={self.folder}",  # native libraries are unpacked there, and go with it
             f"-Dlog4j2.configurationFile={NODE_LOG_SETTINGS}", f"-Dkafkalab.log={self._files[0]}",
             "-cp", classes, main, *arguments],
        )  # fmt: skip
