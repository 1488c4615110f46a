"""The course as a learner sees it: JupyterLab in a browser, the cluster panel and its buttons, predictions, a lab's card.

Writes a picture that the documents show: ``docs/cluster-map.png`` (when ``KAFKALAB_WRITE_PICTURE`` is set), so the
picture is of the thing itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import nbformat
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from accessibility_support import assert_usable
from desk_support import (
    CHROMIUM_OPTIONS,
    Course,
    Troubles,
    code_cells,
    columns_of_code,
    end_kernels,
    heads,
    is_changed,
    kernels,
    load,
    open_notebook,
    panel_of,
    run_cell,
    running_course,
    show_files,
    smallest_text,
    tab,
    text_width,
    wait_until_ready,
    width,
)
from kafkalab import wait_until
from kafkalab.checks import labs
from support import PATIENCE

ROOT = Path(__file__).parents[2]
CHAPTER = "notebooks/02_cluster_failover.ipynb"
LAB = "labs/02_cluster_failover/02_failsafe.ipynb"
OWN_LABS = ROOT / "docs/teach/own-labs"
NOT_YET = re.compile(r"No cluster yet\. Run the (first cell|cell that starts it)\.")

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    with running_course(tmp_path_factory.mktemp("course"), KAFKALAB_LABS=str(OWN_LABS)) as course:
        yield course


@pytest.fixture
def troubles() -> Troubles:
    return Troubles()


@pytest.fixture
def page(course: Course, troubles: Troubles) -> Iterator[Page]:
    executable = os.environ.get("KAFKALAB_CHROMIUM") or shutil.which("chromium")
    if not executable:
        pytest.skip("there is no Chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=CHROMIUM_OPTIONS)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_extra_http_headers(course.login)  # `page.request` doesn't send these
        page.on("pageerror", lambda error: troubles.errors.append(error))
        page.on("requestfailed", troubles.note)
        yield page
        assert not troubles.of_the_page()
        end_kernels(page, course)
        browser.close()


def test_the_panel_shows_the_cluster_of_a_chapter_beside_it(
    course: Course, page: Page, troubles: Troubles, measured: Callable[[str], None]
) -> None:
    open_notebook(page, troubles, course.address(CHAPTER, "chapter"))
    panel = panel_of(page, "02_cluster_failover")
    expect(tab(page, "02_cluster_failover.ipynb")).to_have_count(1)
    expect(panel).to_have_count(0)  # until there's something to show
    expect(page.locator(".jp-DirListing-item").first).to_be_hidden()  # the text first
    assert not is_changed(page, "02_cluster_failover.ipynb")
    page.get_by_role("button", name="Cluster", exact=True).click()
    expect(panel.get_by_text(NOT_YET)).to_be_visible()

    map_cell = next(number for number, source in enumerate(code_cells(CHAPTER)) if "cluster_map = ClusterMap" in source)
    for number in range(map_cell + 1):
        cell = run_cell(page, number)
    expect(cell).to_contain_text("The live map is in the panel beside this notebook.")
    assert "02" in json.loads((course.workspace.parent / "progress/progress.json").read_text())["times"]
    expect(panel.get_by_text(NOT_YET)).to_be_hidden()
    for broker in range(3):
        expect(heads(panel).filter(has_text=f"broker {broker}")).to_be_visible()
    expect(heads(panel, "up")).to_have_count(3)

    def beside() -> bool:
        notebook, shown = (area.bounding_box() for area in (page.locator(".jp-NotebookPanel"), panel))
        return bool(notebook and shown and shown["x"] >= notebook["x"] + notebook["width"])

    def below() -> bool:
        notebook, shown = (area.bounding_box() for area in (page.locator(".jp-NotebookPanel"), panel))
        return bool(notebook and shown and shown["y"] >= notebook["y"] + notebook["height"] and shown["height"] < 260)

    for size, stands in (((1440, 900), beside), ((1280, 720), beside), ((960, 900), below), ((1100, 800), beside)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        wait_until(
            lambda stands=stands: stands() and text_width(page) >= 600 and width(panel) >= 310,
            PATIENCE,
            f"text and panel in a window of {size}",
            last_seen=lambda: (text_width(page), width(panel)),
        )
        assert smallest_text(panel) >= 12
        assert columns_of_code(page) >= 76, f"code wraps at {size}"
        assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth"), f"the map is wider than the panel at {size}"
    page.set_viewport_size({"width": 1280, "height": 1000})

    menu = panel.get_by_label("Actions for broker 0")
    kill = panel.get_by_role("button", name="Kill 0")
    expect(kill).to_be_hidden()
    menu.focus()
    page.keyboard.press("Enter")
    expect(kill).to_be_visible()
    kill.click()
    expect(heads(panel, "dead")).to_have_count(1)
    expect(panel.get_by_role("log", name="Events").get_by_text("moved to broker").first).to_be_visible()
    expect(kill).to_be_hidden()  # the menu is still open, for Restart
    if os.environ.get("KAFKALAB_WRITE_PICTURE"):
        (ROOT / "docs").mkdir(exist_ok=True)
        panel.locator(".kafkalab-maps").screenshot(path=str(ROOT / "docs/cluster-map.png"))
    panel.get_by_role("button", name="Restart 0").click()
    expect(heads(panel, "dead")).to_have_count(0)
    log = panel.locator(".kafkalab-events")
    expect(log.get_by_text("broker 0 is up after")).to_be_visible()
    log.focus()
    assert log.evaluate("log => log === document.activeElement"), "the log can't be focused"
    said = panel.locator(".kafkalab-said")  # what a screen reader says: the newest events
    expect(said).not_to_be_empty()
    assert (said.text_content() or "").split(". ")[0] in (log.text_content() or "")
    assert_usable(page, "a chapter with its cluster", measured)

    load(page, troubles, page.reload)
    expect(heads(panel, "up")).to_have_count(3)
    panel.get_by_label("Actions for broker 1").focus()

    # Another notebook has a panel of its own; each is shown with its notebook. It opens beside the first
    # notebook, though the panel has the focus.
    show_files(page)
    page.locator(".jp-DirListing-item").filter(has_text="00_start_here").dblclick()
    other = panel_of(page, "00_start_here")
    expect(tab(page, "00_start_here.ipynb")).to_have_count(1)
    expect(panel).to_have_count(0)
    areas = page.locator(".lm-DockPanel-tabBar").filter(has_text="00_start_here.ipynb")
    expect(areas.filter(has_text="02_cluster_failover.ipynb")).to_have_count(1)
    tab(page, "02_cluster_failover.ipynb").click()
    expect(panel).to_be_visible()
    expect(other).to_have_count(0)
    # That a kernel is ready is said by the first notebook's status: the second one's may still be starting.
    wait_until(
        lambda: len(kernels(page, course)) == 2,
        PATIENCE,
        "one kernel for each notebook",
        last_seen=lambda: kernels(page, course),
    )

    tab(page, "02_cluster_failover.ipynb").locator(".lm-TabBar-tabCloseIcon").click()
    expect(panel).to_have_count(0)
    expect(tab(page, "Cluster · 02_cluster_failover")).to_have_count(0)
    expect(page.locator(".jp-Dialog")).to_contain_text("End the cluster of 02_cluster_failover?")
    page.locator(".jp-Dialog").get_by_role("button", name="End it").click()
    wait_until(lambda: len(kernels(page, course)) == 1, PATIENCE, "its kernel to end", last_seen=lambda: kernels(page, course))


def test_home_leads_into_the_course_without_a_kernel(
    course: Course, page: Page, troubles: Troubles, measured: Callable[[str], None]
) -> None:
    home = page.locator(".kafkalab-home")
    address = f"{course.server}/lab/workspaces/home?token={course.token}"
    load(page, troubles, lambda: page.goto(address), lambda _: home.locator(".card").count() == 13)
    expect(home.get_by_role("link", name=re.compile("^(Begin with|Continue at|Go on with) "))).to_be_visible()
    assert not kernels(page, course)
    home.locator("summary").filter(has_text="8 labs").first.press("Enter")
    expect(home.get_by_role("link", name="Break a cluster of your own")).to_be_visible()
    assert_usable(page, "home", measured)
    home.get_by_role("link", name="02 · Break a Kafka cluster").press("Enter")
    expect(tab(page, "02_cluster_failover.ipynb")).to_have_count(1)
    with urllib.request.urlopen(f"{course.server}/kafkalab/home") as answer:
        assert "/login" in answer.url  # a stranger learns nothing


def test_home_shows_own_labs_and_what_was_left_alone(course: Course, page: Page, troubles: Troubles) -> None:
    manifest = course.workspace / ".kafkalab/manifest.json"
    records = json.loads(manifest.read_text())
    records["files"]["notebooks/03_producer.ipynb"]["seen"] = "a newer version"  # as an update leaves it
    manifest.write_text(json.dumps(records))
    home = page.locator(".kafkalab-home")
    address = f"{course.server}/lab/workspaces/own?token={course.token}"
    load(page, troubles, lambda: page.goto(address), lambda _: home.locator(".card").count() == 13)
    left = home.get_by_role("region", name="Left alone")
    expect(left).to_contain_text("notebooks/03_producer.ipynb (the course has a newer one)")
    own = home.get_by_role("region", name="Labs of your class")
    own.get_by_role("link", name="Give each broker a partition to lead").press("Enter")
    expect(tab(page, "02_leaders.ipynb")).to_have_count(1)


def test_a_projector_keeps_what_has_run_in_view(course: Course, page: Page, troubles: Troubles) -> None:
    kernel = {"kernelspec": nbformat.read(ROOT / CHAPTER, nbformat.NO_CONVERT).metadata.kernelspec}
    cells = [nbformat.v4.new_code_cell(f"print('line\\n' * 12, 'end of {n}')") for n in range(5)]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(notebook, course.workspace / "shown.ipynb")
    page.set_viewport_size({"width": 1024, "height": 700})
    open_notebook(page, troubles, course.address("shown.ipynb", "projector"))
    page.keyboard.press("Control+Shift+C")
    page.get_by_role("textbox", name="SEARCH").fill("Projector Mode")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_class(re.compile("kafkalab-projector"))
    for number in range(4):
        output = run_cell(page, number).locator(".jp-OutputArea-output")
        expect(output).to_contain_text(f"end of {number}")
        expect(output).to_be_in_viewport(ratio=1)
    page.locator(".jp-CodeCell .cm-content").nth(4).click()
    output = run_cell(page, 4).locator(".jp-OutputArea-output")
    expect(output).to_be_in_viewport(ratio=1)
    tab(page, "shown.ipynb").click()
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)


def test_a_restarted_kernel_has_no_cluster_yet(course: Course, page: Page, troubles: Troubles) -> None:
    start = write(course, "restart", "from kafkalab import Cluster\n\ncluster = Cluster(brokers=1).start()", "cluster.stop()")
    open_notebook(page, troubles, course.address(start, "restart"))
    panel = panel_of(page, "restart")
    up = heads(panel, "up")
    run_cell(page, 0)
    expect(up).to_have_count(1)
    page.get_by_role("button", name="Restart the kernel", exact=True).click()
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    expect(panel.get_by_text(NOT_YET)).to_be_visible()
    wait_until_ready(page)
    run_cell(page, 0)  # its number is still there from the first time: that it has run shows in the panel alone
    expect(up).to_have_count(1)
    run_cell(page, 1)
    expect(panel.get_by_text("The cluster has stopped.").first).to_be_visible()
    strip = panel.bounding_box()
    assert strip and strip["height"] < 60
    panel.get_by_role("button", name="Start again").click()
    expect(up).to_have_count(1)


def test_tabs_come_with_what_runs_and_the_arrow_keys_move_through_them(course: Course, page: Page, troubles: Troubles) -> None:
    start = write(
        course,
        "tabs",
        "from confluent_kafka import Consumer, TopicPartition\nfrom confluent_kafka.admin import AdminClient, NewTopic\n"
        "from kafkalab import Cluster\n\ncluster = Cluster(brokers=1).start()\n"
        'admin = AdminClient(cluster.client_config())\nadmin.create_topics([NewTopic("letters", 1, 1)])["letters"].result()',
        'consumer = Consumer(cluster.client_config(group_id="readers"))\n'
        'consumer.commit(offsets=[TopicPartition("letters", 0, 0)], asynchronous=False) and None',
        "consumer.close()\ncluster.stop()",
    )
    open_notebook(page, troubles, course.address(start, "tabs"))
    panel = panel_of(page, "tabs")
    run_cell(page, 0)
    expect(heads(panel, "up")).to_have_count(1)
    expect(panel.get_by_role("tablist")).to_be_hidden()  # there's only the map
    run_cell(page, 1)
    map_tab, groups_tab = (panel.get_by_role("tab", name=name) for name in ("Map", "Groups"))
    expect(map_tab).to_have_attribute("aria-selected", "true")
    expect(groups_tab).to_be_visible()
    map_tab.focus()
    for key, front, behind in (
        ("ArrowRight", groups_tab, map_tab),
        ("ArrowRight", map_tab, groups_tab),
        ("End", groups_tab, map_tab),
    ):
        page.keyboard.press(key)
        expect(front).to_be_focused()
        expect(front).to_have_attribute("aria-selected", "true")
        expect(behind).to_have_attribute("aria-selected", "false")
    groups = panel.get_by_role("tabpanel", name="Groups")
    expect(groups.get_by_text("readers")).to_be_visible()
    expect(groups.get_by_role("row").filter(has_text="letters")).to_be_visible()
    expect(heads(panel, "up")).to_be_hidden()
    run_cell(page, 2)
    expect(groups_tab).to_have_count(0)
    expect(panel.get_by_text("The cluster has stopped.").first).to_be_visible()


CLICK = """(area, [label, text]) => new Promise(resolve => {
    const began = performance.now();
    const look = () => area.textContent.includes(text) ? resolve(performance.now() - began) : requestAnimationFrame(look);
    [...area.querySelectorAll('button')].find(button => button.textContent.trim() === label).click();
    look();
})"""  # returns milliseconds from the click until the text is there


def test_a_click_acts_while_a_cell_runs(
    course: Course, page: Page, troubles: Troubles, measured: Callable[[str], None]
) -> None:
    notebook = write(
        course,
        "click",
        "from pathlib import Path\nfrom kafkalab import Cluster, Predict, Quiz, wait_until\n\n"
        "cluster = Cluster(brokers=1).start()",
        'quiz = Quiz("00_start_here")\nquiz',
        'gap = Predict("Will it wait?", options=["yes", "no"])\ngap',
        # The cell itself changes each widget: its shell must not become the one that handles their clicks.
        'quiz._next.tooltip = gap._button.tooltip = "changed"\nwait_until(Path("go-on").exists, 300, "the end of the test")',
    )
    open_notebook(page, troubles, course.address(notebook, "click"))
    panel = panel_of(page, "click")
    _, quiz, prediction = (run_cell(page, number) for number in range(3))
    quiz.locator(".kl-quiz input").first.check()
    quiz.get_by_role("button", name="Check", exact=True).click()
    expect(quiz.get_by_role("status")).to_be_visible()
    assert_usable(page, "a quiz and a prediction", measured)
    running = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell").nth(3)
    running.locator(".cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    prompt = running.locator(".jp-InputPrompt")
    expect(prompt).to_have_text("[*]:")
    expect(heads(panel, "up")).to_have_count(1)

    steps = [quiz.evaluate(CLICK, ["Next", f"question {number} of"]) for number in range(2, 9)]
    prediction.get_by_text("no", exact=True).click()
    predicted = prediction.evaluate(CLICK, ["Predict", "You said no"])
    killed = panel.evaluate(CLICK, ["Kill 0", "broker 0 killed"])
    expect(prompt).to_have_text("[*]:")  # all that, while the cell ran
    (course.workspace / notebook).with_name("go-on").touch()
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"))
    measured(
        f"a click while a cell runs: quiz {median(steps):.0f} ms, prediction {predicted:.0f} ms, broker killed {killed:.0f} ms"
    )
    assert median(steps) <= 1000


def test_the_log_microscope_shows_a_record_when_it_is_written(course: Course, page: Page, troubles: Troubles) -> None:
    notebook = write(
        course,
        "microscope",
        "from kafkalab import Cluster, LogMicroscope\nfrom confluent_kafka import Producer\nfrom confluent_kafka.admin import "
        "AdminClient, NewTopic\n\ncluster = Cluster(brokers=1).start()\nproducer = Producer(cluster.client_config())\n"
        'admin = AdminClient(cluster.client_config())\nadmin.create_topics([NewTopic("readings", 1)])["readings"].result()',
        'LogMicroscope(cluster, "readings")',
        'producer.produce("readings", "21 degrees", "sensor")\nproducer.flush()',
        "cluster.stop()",
    )
    open_notebook(page, troubles, course.address(notebook, "microscope"))
    run_cell(page, 0)
    shown = run_cell(page, 1).locator(".jp-OutputArea")
    status = shown.locator("span").filter(has_text="readings-0 on broker 0, the leader")
    record = shown.locator("svg text").filter(has_text="sensor → 21 degrees")
    expect(status).to_be_visible()
    expect(record).to_have_count(0)
    run_cell(page, 2)
    expect(record).to_be_visible()
    assert smallest_text(shown) >= 12
    assert shown.evaluate("area => area.scrollWidth <= area.clientWidth"), "the microscope is wider than the notebook"
    run_cell(page, 3)
    expect(shown.locator("[data-mime-type='text/html'] img").first).to_be_visible()  # the still picture that replaces it


def test_a_prediction_is_shown_again_beside_what_was_measured(
    course: Course, page: Page, troubles: Troubles, measured: Callable[[str], None]
) -> None:
    notebook = write(
        course,
        "predict",
        'from kafkalab import Predict\n\ngap = Predict("How much longer?", options=["as long", "2×", "more than 100×"])\ngap',
        'gap.explain("The first one *waits*.", measured="676×")',
        'speed = Predict("How long?", unit="s")\nspeed',
        'speed.explain("It is quick.", measured="1.9 s")',
    )
    open_notebook(page, troubles, course.address(notebook, "predict"))
    question, explanation, *_ = (run_cell(page, number) for number in range(4))
    expect(explanation).not_to_contain_text("Measured:")
    assert_usable(page, "predictions", measured)
    question.get_by_text("2×", exact=True).click()
    question.get_by_role("button", name="Predict").click()
    expect(explanation.locator(".jp-OutputArea")).to_contain_text("You said 2×. Measured: 676×. The first one waits.")
    expect(explanation.locator(".jp-OutputArea em")).to_have_text("waits")
    expect(question.get_by_role("button", name="Predict")).to_be_disabled()

    late = page.locator(".jp-CodeCell").nth(3)
    late.get_by_role("button", name="Show me").click()
    expect(late.locator(".jp-OutputArea")).to_contain_text("Measured: 1.9 s. It is quick.")


def test_the_card_of_a_lab_checks_and_helps(
    course: Course, page: Page, troubles: Troubles, measured: Callable[[str], None]
) -> None:
    notebook = write(
        course,
        "card",
        'from kafkalab import Cluster, LabCard\n\nLabCard("00_first_record")',
        "cluster = Cluster(brokers=1).start()",
        "cluster.kill(9)",
        "from confluent_kafka import Producer\n\nproducer, sent = Producer(cluster.client_config()), []\n"
        'producer.produce("greetings", "My first record", on_delivery=lambda error, record: sent.append(record))\n'
        "producer.flush()\ncoordinates = (sent[0].topic(), sent[0].partition(), sent[0].offset())\n"
        "read_back = sent[0].value()",
    )
    open_notebook(page, troubles, course.address(notebook, "card"))
    panel = panel_of(page, "card")
    expect(run_cell(page, 0)).to_contain_text("The lab card is in the panel beside this notebook.")
    panel.get_by_role("button", name="Check").click()
    expect(panel.get_by_text("There's no cluster yet.")).to_be_visible()
    run_cell(page, 1)
    panel.get_by_role("button", name="Check").click()
    expect(panel.get_by_label("not met", exact=True).first).to_be_visible()
    panel.get_by_role("button", name="Next hint").click()
    panel.get_by_role("button", name="Next hint").click()
    expect(panel.get_by_text("Hint 1 of")).to_be_visible()
    expect(panel.get_by_text("Hint 2 of")).to_be_visible()
    assert_usable(page, "a lab with its card", measured)
    panel.get_by_role("button", name="Solution").click()
    expect(panel.get_by_text("Show the solution?")).to_be_visible()
    panel.get_by_role("button", name="Yes").click()
    panel.get_by_role("link", name="00_first_record.ipynb").click()
    expect(tab(page, "00_first_record.ipynb")).to_have_class(re.compile(r"\bkafkalab-solution-tab\b"))
    expect(tab(page, "card.ipynb")).not_to_have_class(re.compile(r"\bkafkalab-solution-tab\b"))
    assert heading_mark(page) == "Solution"

    tab(page, "card.ipynb").click()
    error = run_cell(page, 2, fails=True).locator(".jp-OutputArea")
    expect(error).to_contain_text("UnknownBroker")
    expect(error.locator("details")).to_have_count(1)
    assert error.evaluate("area => area.innerText.trim().split('\\n').length") < 6

    run_cell(page, 3)
    panel.get_by_role("button", name="Check").click()
    panel.get_by_role("link", name="Next lab →").click()
    stems = list(labs())
    following = stems[stems.index("00_first_record") + 1]
    expect(tab(page, f"{following}.ipynb")).to_have_count(1)
    tab(page, "card.ipynb").click()
    panel.get_by_role("button", name="Reset").click()
    panel.get_by_role("button", name="Yes").click()
    expect(panel.get_by_text("The notebook is fresh again.")).to_be_visible()


def heading_mark(page: Page) -> str:
    """What the browser shows before the heading of the notebook that is shown."""
    heading = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-RenderedMarkdown h1").first
    return heading.evaluate("heading => getComputedStyle(heading, '::before').content").strip('"')


def write(course: Course, name: str, *cells: str) -> str:
    """A notebook in the learner's folder of chapter 00's labs; its path for JupyterLab."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = f"labs/00_start_here/{name}.ipynb"
    nbformat.write(notebook, course.workspace / path)
    return path
