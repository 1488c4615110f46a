"""Quizzes: their questions, and what a learner sees after an answer."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import ipywidgets
import pytest

from kafkalab.progress import load
from kafkalab.widgets import Quiz
from kafkalab.widgets.quiz import quiz_html, quiz_text
from kafkalab.widgets.quiz_data import Question, load_quiz, quiz_names
from widget_support import button, find, find_all, html, press


@pytest.mark.parametrize("name", quiz_names())
def test_every_question_has_a_sound_answer(name: str) -> None:
    quiz = load_quiz(name)
    assert quiz.title and quiz.questions
    for question in quiz.questions:
        assert question.ask and len(question.explanation) > 60
        assert "  " not in question.explanation, "a line of the file was joined badly"
        assert len({option.text for option in question.options}) == len(question.options)
        if question.kind != "open":
            assert len(question.options) >= 3 and question.is_right(question.right)
            assert not question.is_right(())
            assert not question.is_right(range(len(question.options)))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("00_start_here", 18),
        ("01_single_node", 7),
        ("02_cluster_failover", 11),
        ("03_producer", 9),
        ("04_consumer", 17),
        ("05_log_and_replication", 14),
        ("06_schema_registry", 5),
        ("07_security", 8),
        ("08_mirrormaker", 10),
        ("09_connect", 12),
        ("10_streams", 6),
        ("11_spark_pipeline", 3),
        ("12_kafka_4", 7),
    ],
)
def test_every_review_question_of_the_curriculum_is_there(name: str, number: int) -> None:
    assert len(load_quiz(name).questions) >= number


@pytest.mark.parametrize("name", quiz_names())
def test_right_answers_do_not_always_stand_in_the_same_place(name: str) -> None:
    assert len({min(q.right) for q in load_quiz(name).questions if q.right}) > 2


@pytest.mark.parametrize("name", quiz_names())
def test_right_answers_are_not_told_by_their_length(name: str) -> None:
    questions = [question for question in load_quiz(name).questions if question.kind == "one"]
    longest_is_right = [max(q.options, key=lambda option: len(option.text)).right for q in questions]
    assert sum(longest_is_right) <= len(questions) / 2


def test_an_unknown_quiz_names_those_that_there_are() -> None:
    with pytest.raises(LookupError, match="02_cluster_failover"):
        load_quiz("99_nothing")


def test_the_still_form_has_all_questions_with_answers_folded() -> None:
    quiz = load_quiz("02_cluster_failover")
    html = quiz_html(quiz)
    assert html.count("<details>") == len(quiz.questions)
    assert "<code>my-failsafe-topic</code>" in html
    assert all(question.options[0].text.replace("`", "") in quiz_text(quiz) for question in quiz.questions)


def answer(quiz: Quiz, question: Question, chosen: Collection[int]) -> None:
    """Answer the question that the quiz shows."""
    if question.kind == "one":
        (find(quiz, ipywidgets.RadioButtons).index,) = chosen
    for i, box in enumerate(find_all(quiz, ipywidgets.Checkbox)):
        box.value = i in chosen
    press(quiz, "Show an answer" if question.kind == "open" else "Check")


def test_answering_all_rightly_counts_and_is_kept(progress_folder: Path) -> None:
    quiz = Quiz("00_start_here")
    questions = load_quiz("00_start_here").questions
    for number, question in enumerate(questions, 1):
        assert f"question {number} of {len(questions)}" in html(quiz)
        answer(quiz, question, question.right)
        if number < len(questions):
            press(quiz, "Next")
    assert button(quiz, "Next").disabled
    assert quiz.result == (17, 17)
    assert (load().quizzes["00_start_here"].right, load().quizzes["00_start_here"].questions) == (17, 17)
    assert "Finished: 17 of 17 right" in html(quiz)


def test_a_wrong_answer_is_explained_and_may_be_mended(progress_folder: Path) -> None:
    quiz = Quiz("01_single_node")
    question = load_quiz("01_single_node").questions[0]
    press(quiz, "Check")
    assert "Choose an answer" in html(quiz) and html(quiz).count(">○</span>") == 7
    assert "question 1 of 7 · <b>none answered yet</b>" in html(quiz)
    answer(quiz, question, {0})
    assert "Not quite" in html(quiz) and "ZooKeeper" in html(quiz)
    assert quiz.result == (0, 7) and "question 1 of 7 · <b>0 of 7 right so far</b>" in html(quiz)
    assert 'aria-label="not right, this question"' in html(quiz)
    answer(quiz, question, question.right)
    assert quiz.result == (1, 7) and "1 of 7 right so far" in html(quiz)
    assert 'aria-label="right, this question"' in html(quiz)


def test_a_question_in_your_own_words_does_not_count(progress_folder: Path) -> None:
    quiz = Quiz("00_start_here")
    assert "question 1 of 18 · <b>17 count</b>" in html(quiz)
    questions = load_quiz("00_start_here").questions
    (number,) = (i for i, question in enumerate(questions) if question.kind == "open")
    for _ in range(number):
        press(quiz, "Next")
    press(quiz, "Show an answer")
    assert f"question {number + 1} of 18, which doesn't count · <b>0 of 17 right so far</b>" in html(quiz)


def at(quiz: Quiz, name: str, kind: str) -> Question:
    """Show the first question of a kind, and return it."""
    questions = load_quiz(name).questions
    number = next(i for i, question in enumerate(questions) if question.kind == kind)
    for _ in range(number):
        press(quiz, "Next")
    return questions[number]


def test_an_answer_marks_the_options_in_words(progress_folder: Path) -> None:
    quiz = Quiz("01_single_node")
    question = at(quiz, "01_single_node", "one")
    (right,) = question.right
    chosen = 1 if right != 1 else 2
    answer(quiz, question, {chosen})
    field = find(quiz, ipywidgets.RadioButtons)
    for i, text in enumerate(field.options):
        begins, ends = {right: ("✓ ", "(right, but you left it out)"), chosen: ("✗ ", "(not right)")}.get(i, ("", ""))
        assert text.startswith(begins) and text.endswith(ends) and ("✓" in text or "✗" in text) == bool(begins)
    assert field.index == chosen  # still what you chose
    answer(quiz, question, {right})
    assert field.options[right].endswith("(right)") and "✗" not in "".join(field.options)


def test_an_answer_marks_each_of_several_options(progress_folder: Path) -> None:
    quiz = Quiz("00_start_here")
    question = at(quiz, "00_start_here", "many")
    first, *others = sorted(question.right)
    wrong = min(set(range(len(question.options))) - question.right)
    answer(quiz, question, {first, wrong})
    texts = [box.description for box in find_all(quiz, ipywidgets.Checkbox)]
    assert texts[first].startswith("✓ ") and texts[first].endswith("(right)")
    assert texts[wrong].startswith("✗ ") and texts[wrong].endswith("(not right)")
    assert all(texts[i].startswith("✓ ") and texts[i].endswith("(right, but you left it out)") for i in others)
