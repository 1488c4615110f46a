"""The class board: it evaluates what the seats send, and shows it to the instructor and on the wall."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafkalab.classroom.anonymous import copy_anonymously
from kafkalab.classroom.board_server import BoardServer
from kafkalab.classroom.board_stream import BoardStream
from kafkalab.classroom.class_cluster import INSTRUCTOR
from kafkalab.classroom.facts import Facts
from kafkalab.classroom.lesson import Lesson
from kafkalab.classroom.released import Released
from kafkalab.classroom.spark_login import source_options
from kafkalab.classroom.views import RequirementWords, instructor_view, wall_view
from kafkalab.course.questions import Question

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["Board"]


class Board:
    """The board of a class.

    Parameters
    ----------
    cluster
        The class's running cluster.
    schema_id
        The registry's id of the events' schema.
    questions
        Today's questions. Their explanations are held back from `start` on.
    seats
        Returns the seats that have joined. The board counts only these.
    publish
        Gives each new state to the class. Raises `KafkaLabError` if it can't.
    words
        Returns what a requirement says, by the id of its check and its number from 1. It must answer for any id and number,
        since seats send them.
    port
        The port of the pages on loopback. With 0, any free one.

    Attributes
    ----------
    facts, lesson
        What is known, and what is asked.
    """

    def __init__(
        self,
        cluster: Cluster,
        schema_id: int,
        questions: Sequence[Question],
        seats: Callable[[], Collection[str]],
        publish: Callable[[Released], None],
        words: RequirementWords,
        *,
        port: int = 0,
    ) -> None:
        self.facts = facts = Facts()
        self.lesson = lesson = Lesson(questions, facts, seats, publish)
        self._stream = BoardStream(facts, schema_id, source_options(cluster, INSTRUCTOR))

        def instructor() -> Mapping[str, Any]:
            shown = instructor_view(facts, lesson, seats(), words, time.time())
            return {**shown, "problem": self._stream.problem, "wall": self._server.wall_url}

        self._server = BoardServer(
            instructor,
            lambda: wall_view(facts, lesson, seats(), words),
            {
                "ask": lambda given: lesson.ask(given["question"]),
                "move": lambda given: lesson.move(given["phase"]),
                "close": lambda _: lesson.close(),
                "release": lambda given: lesson.release(given["questions"]),
                "lower": lambda given: facts.lower(given["seat"]),
                "copy": lambda _: copy_anonymously(cluster, schema_id, seats()),
                "end": lambda _: lesson.end(),
            },
            port,
        )
        facts.on_change(self._server.changed)
        lesson.on_change(self._server.changed)

    @property
    def url(self) -> str:
        """The instructor's page, with its secret."""
        return self._server.url

    @property
    def wall_url(self) -> str:
        """The page for the wall."""
        return self._server.wall_url

    @property
    def ended(self) -> bool:
        """Whether the instructor has ended the class on the board."""
        return self.lesson.released.ended

    def start(self) -> None:
        """Serve the pages, and hold back today's explanations. Spark starts in the background.

        Raises
        ------
        KafkaLabError
            If the port is taken, or the class can't be told what is held back.
        """
        self._server.start()
        try:
            self.lesson.begin()
        except BaseException:
            self._server.stop()
            raise
        self._stream.start()

    def stop(self) -> None:
        """Stop the pages and Spark. Safe to call again."""
        self._server.stop()
        self._stream.stop()
