"""Links that open a notebook elsewhere: only those that have an address."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from kafkalab.course import find_course
from launch import binder, codespaces, launch_row

LAB = "labs/02_cluster_failover/02_failsafe.ipynb"
GITHUB = "https://github.com/somebody/kafka-course"


def test_binder_opens_a_notebook_of_the_workspace() -> None:
    address = urlsplit(binder(f"{GITHUB}.git", LAB))
    assert (address.netloc, address.path) == ("mybinder.org", "/v2/gh/somebody/kafka-course/HEAD")
    [opened] = parse_qs(address.query)["urlpath"]
    assert opened == f"lab/tree/{LAB}"  # in JupyterLab's folder, which is the workspace
    assert LAB in find_course().content.files()


def test_binder_knows_repositories_of_other_hosts() -> None:
    address = binder("https://git.example.org/courses/kafka", LAB)
    assert address.startswith("https://mybinder.org/v2/git/https%3A%2F%2Fgit.example.org%2Fcourses%2Fkafka/HEAD?")


def test_codespaces_are_githubs() -> None:
    assert codespaces(f"{GITHUB}/") == "https://codespaces.new/somebody/kafka-course"
    assert codespaces("https://git.example.org/courses/kafka") is None


def test_a_page_offers_only_what_has_an_address() -> None:
    def offered(repository: str) -> list[str]:
        return re.findall(r"<a [^>]+>([^<]+)</a>", launch_row(repository, LAB))

    assert offered("") == ["Download"]
    assert offered("https://git.example.org/courses/kafka") == ["Binder", "Download"]
    assert offered(GITHUB) == ["Binder", "Codespaces", "Download"]
    assert 'href="02_failsafe.ipynb" download' in launch_row("", LAB)
