"""The lab card: its checks, hints and buttons."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from kafkalab.checks import CheckContext, Lab, Unmet, check, hint, learner
from kafkalab.course import Content, Course
from kafkalab.errors import KafkaLabError
from kafkalab.progress import load
from kafkalab.running import Register
from kafkalab.waiting import wait_until
from kafkalab.widgets import ClusterMap, LabCard, lab_card
from kafkalab.widgets.panel import ClusterPanel
from support import PATIENCE
from widget_support import WIDGET_VIEW, FakeCluster, Shown, button, html, html_values, labels, maps_in, press, show


@dataclass
class Probed:
    """What the checks of the lab see."""

    topic: bool = False
    records: bool = False
    expected: FakeCluster | None = None

    def meet(self) -> None:
        """Let all requirements be met."""
        self.topic = self.records = True


FACTS = {"difficulty": "easy", "minutes": 20, "needs": "chapter 08"}


def write_lab(root: Path, **more: int) -> None:
    path = root / "labs/09_chapter/09_games.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(metadata={"kafkalab": FACTS | more}), path)


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch, progress_folder: Path, tmp_path: Path) -> Probed:
    """A lab with two checks; what their probes find can be changed."""
    lab = Lab("09_games")
    state = Probed()
    callbacks: list[object] = []
    first = lab.add_check("09_topic", "Make a topic", hints=("Think.", "Use `create`."))

    @first.requires("There is a topic")
    def topic(ctx: CheckContext) -> None:
        assert state.expected in (None, ctx.cluster)
        if not state.topic:
            raise Unmet("There's no topic `games`.")

    @first.requires("It holds the records", after=topic)
    def records(ctx: CheckContext) -> None:
        assert ctx.answer("count", int, "records") == 3
        if not state.records:
            raise Unmet("It holds no record.")

    second = lab.add_check("09_group", "Read it", hints=("Read.",))
    second.requires("The group has read")(lambda _: None)
    write_lab(tmp_path)
    for user in ("kafkalab.course", "kafkalab.checks.lab"):
        monkeypatch.setattr(f"{user}.find_course", lambda: Course("gamescourse", Content(tmp_path)))
    monkeypatch.setitem(sys.modules, "gamescourse.ch09_chapter.games", SimpleNamespace(lab=lab))
    for module in ("kafkalab.checks.learner", "kafkalab.widgets.lab_card"):
        monkeypatch.setattr(f"{module}.on_report", callbacks)
    monkeypatch.setattr(LabCard, "_newest", {})
    return state


def test_the_card_says_how_long_the_cells_ran(probed: Probed, tmp_path: Path) -> None:
    assert "20 minutes ·" in html(LabCard("09_games"))
    write_lab(tmp_path, seconds=35)
    assert "20 minutes (all cells of its solution run in 35 s) ·" in html(LabCard("09_games"))


def test_a_check_in_a_cell_updates_the_card(probed: Probed, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    card = LabCard("09_games")
    assert "easy · about 20 minutes · needs chapter 08" in html(card)
    assert "0 of 2 passed" in html(card) and "✗" not in html(card)
    check("09_topic", cluster, count=3)
    assert "There&#x27;s no topic <code>games</code>." in html(card)
    assert 'aria-label="not met">✗' in html(card) and "0 of 2 met" in html(card)
    probed.meet()
    check("09_topic", cluster, count=3)
    assert "1 of 2 passed" in html(card)
    assert card.current.id == "09_group"


def test_the_button_checks_with_the_variables_of_the_notebook(
    probed: Probed, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kafkalab.widgets.lab_card.get_ipython", lambda: SimpleNamespace(user_ns={"cluster": cluster, "count": 3})
    )
    card = LabCard("09_games")
    probed.meet()
    press(card, "Check")
    wait_until(lambda: "1 of 2 passed" in html(card), PATIENCE, "the card to show it", last_seen=lambda: html(card))
    assert load().labs["09_topic"].passed
    assert not button(card, "Check").disabled


def test_the_button_says_when_there_is_no_cluster_yet(probed: Probed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.widgets.lab_card.get_ipython", lambda: None)
    card = LabCard("09_games")
    press(card, "Check")
    assert "There's no cluster yet. Run the cell that starts it." in html_values(card)


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register[FakeCluster]:
    """What runs in this process: nothing yet."""
    register: Register[FakeCluster] = Register()
    monkeypatch.setattr("kafkalab.widgets.lab_card.clusters", register)
    lab_card._follow_clusters.cache_clear()
    return register


def test_a_sentence_about_no_cluster_goes_when_one_starts(
    probed: Probed, cluster: FakeCluster, register: Register[FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkalab.widgets.lab_card.get_ipython", lambda: None)
    card = LabCard("09_games")
    press(card, "Check")
    assert "no cluster yet" in html(card)
    register.announce(cluster, cluster.on_stop)
    assert "no cluster yet" not in html(card)


def test_a_sentence_about_the_solution_goes_with_a_pass_and_with_another_cluster(
    probed: Probed,
    cluster: FakeCluster,
    register: Register[FakeCluster],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("kafkalab.course.solution", lambda name: tmp_path / "09_games.ipynb")
    card = LabCard("09_games")

    def solve() -> None:
        press(card, "Solution")
        press(card, "Yes")
        assert "The solution:" in html(card)

    solve()
    register.announce(cluster, cluster.on_stop)
    assert "The solution:" not in html(card)
    solve()
    check("09_topic", cluster, count=3)
    assert "The solution:" in html(card)  # it's still of use
    probed.meet()
    check("09_topic", cluster, count=3)
    assert "The solution:" not in html(card)


def test_what_a_stopped_cluster_lacked_goes_when_the_next_one_starts(
    probed: Probed, cluster: FakeCluster, register: Register[FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    card = LabCard("09_games")
    register.announce(cluster, cluster.on_stop)
    check("09_group", cluster)
    check("09_topic", cluster, count=3)
    other = FakeCluster("other")
    register.announce(other, other.on_stop)
    assert "✗" in html(card)  # the cluster that it's about runs still
    cluster.stop()
    assert "✗" in html(card)
    third = FakeCluster("third")
    register.announce(third, third.on_stop)
    assert "✗" not in html(card) and "1 of 2 passed" in html(card)
    for one in (other, third):
        one.stop()


def test_what_waits_has_no_sentence_of_its_own(
    probed: Probed, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    card = LabCard("09_games")
    check("09_topic", cluster, count=3)
    assert "Not looked at yet" in capsys.readouterr().out
    assert "ot looked at yet" not in html(card) and "More about the others" not in html(card)


def test_a_passed_lab_offers_the_next_one_on_top(
    probed: Probed, cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    following = tmp_path / "labs/10_chapter/10_next.ipynb"
    following.parent.mkdir()
    following.touch()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "labs/09_chapter")
    card = LabCard("09_games")
    probed.meet()
    check("09_topic", cluster, count=3)
    assert "Lab passed" not in html(card)
    check("09_group", cluster)
    shown = html(card)
    assert 'href="../10_chapter/10_next.ipynb"' in shown and "<details open>" not in shown
    assert shown.index("Lab passed") < shown.index("Next lab →") < shown.index("2 of 2 passed")


@pytest.mark.parametrize("folder", ["solutions", "labs"])
def test_a_solution_says_that_it_is_one(folder: str, probed: Probed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("notebooks", f"{folder}/09_chapter"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / folder / "09_chapter")
    assert ("Solution</span> of 09_games" in html(LabCard("09_games"))) == (folder == "solutions")


def test_a_check_prints_one_line_while_the_card_is_beside_the_notebook(
    probed: Probed, cluster: FakeCluster, panel: ClusterPanel, shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    card = LabCard("09_games")
    check("09_topic", cluster, count=3)
    assert len(capsys.readouterr().out.splitlines()) > 1  # it was made, but never shown
    show(card)
    check("09_topic", cluster, count=3)
    assert capsys.readouterr().out == "09_topic: 0 of 2 requirements are met. The lab card says what is missing.\n"
    probed.meet()
    check("09_topic", cluster, count=3)
    assert capsys.readouterr().out == "09_topic: All 2 requirements are met. Lab passed.\n"


def test_a_check_prints_all_lines_where_the_card_is_in_its_cell(
    probed: Probed, cluster: FakeCluster, shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    show(LabCard("09_games"))
    report = check("09_topic", cluster, count=3)
    assert capsys.readouterr().out == f"{report}\n"


def test_earlier_hints_stay_and_after_the_last_there_is_no_next(probed: Probed) -> None:
    card = LabCard("09_games")
    press(card, "Next hint")
    assert "Hint 1 of 2" in html(card) and "Use <code>" not in html(card)
    press(card, "Next hint")
    assert "Think." in html(card) and "Use <code>create</code>." in html(card)
    assert button(card, "Next hint").disabled


def test_hints_are_counted_once_for_the_card_and_the_cell(probed: Probed, capsys: pytest.CaptureFixture[str]) -> None:
    hint("09_topic")
    card = LabCard("09_games")
    assert "Hint 1 of 2" in html(card)
    hint("09_topic")
    hint("09_topic")
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Hint 2 of 2: Use `create`.",
        "That was the last hint. `kafkalab solution 09_topic` in a terminal opens the solution.",
    ]
    press(card, "Next hint")
    assert "Hint 2 of 2" in html(card) and button(card, "Next hint").disabled


def test_the_button_checks_the_cluster_that_the_variable_holds_now(
    probed: Probed, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {"cluster": FakeCluster("another"), "berlin": cluster, "count": 3}
    monkeypatch.setattr("kafkalab.widgets.lab_card.get_ipython", lambda: SimpleNamespace(user_ns=variables))
    card = LabCard("09_games")
    check("09_topic", cluster, count=3)
    variables["berlin"] = probed.expected = FakeCluster("new")
    probed.meet()
    press(card, "Check")
    wait_until(lambda: "1 of 2 passed" in html(card), PATIENCE, "the card to show it", last_seen=lambda: html(card))


def test_a_card_that_is_made_again_takes_the_place_of_the_one_before(
    probed: Probed, cluster: FakeCluster, shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    older, newer = LabCard("09_games"), LabCard("09_games")
    for card in (older, newer):
        show(card)
    assert [WIDGET_VIEW in forms[-1] for forms in shown.values()] == [False, True]
    assert len(learner.on_report) == 1
    check("09_group", cluster)
    assert "1 of 2 passed" in html(newer) and "1 of 2 passed" not in html(older)


def test_reset_and_solution_ask_first(probed: Probed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[str] = []
    monkeypatch.setattr("kafkalab.course.reset", lambda name: done.append(f"reset {name}"))
    solution = tmp_path / "09_games.ipynb"
    monkeypatch.setattr("kafkalab.course.solution", lambda name: done.append(f"solution {name}") or solution)
    card = LabCard("09_games")
    for asked, answered in (("Solution", "No"), ("Reset", "No"), ("Solution", "Yes")):
        press(card, asked)
        press(card, answered)
        assert {"Yes", "No"}.isdisjoint(labels(card))
    assert done == ["solution 09_games"]
    assert 'data-kafkalab-open="' in html(card) and "09_games.ipynb" in html(card)


def test_a_stored_card_is_text_that_does_not_depend_on_progress(
    probed: Probed, cluster: FakeCluster, shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    card = LabCard("09_games")
    check("09_group", cluster)
    show(card)
    ((bundle,),) = shown.values()
    assert bundle["text/plain"].splitlines() == [
        "09_games: easy, 20 minutes, needs chapter 08",
        "09_topic: Make a topic",
        "  · There is a topic",
        "  · It holds the records",
        "09_group: Read it",
        "  · The group has read",
    ]


def test_the_panel_shows_the_card_above_the_maps(
    probed: Probed, panel: ClusterPanel, cluster: FakeCluster, shown: Shown
) -> None:
    panel.follow(cluster, cluster.nodes.on_stop, ClusterMap)
    card = LabCard("09_games")
    show(card)
    above, _ = panel.widget.children
    assert above.children == (card.widget,)
    assert len(maps_in(panel)) == 1


def test_an_unknown_lab_names_those_that_may_be_meant(probed: Probed) -> None:
    with pytest.raises(KafkaLabError, match="did you mean 09_games"):
        LabCard("09_game")
