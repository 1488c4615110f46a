"""pyproject.toml, the locks, conda's file, Binder's and the workflow name the same versions, and no registry."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from kafkalab.cli.findings import PYTHONS

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PROJECT, PIPELINE = (tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in (".", "pipeline"))
COURSE = [one for one in PROJECT["dependencies"] if one != PIPELINE["name"]] + PIPELINE["dependencies"]

# Put together here, or this file would name them.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("central", "sonatype"),
        ("registry", "npmjs", "org"),
        ("deb", "debian", "org"),
        ("registry-1", "docker", "io"),
        ("conda", "anaconda", "org"),
    )
]


def locked(name: str) -> dict[str, str]:
    """Package → version and marker, of a lock."""
    text = (ROOT / "requirements" / name).read_text()
    return {
        canonicalize_name(name) + (f" ; {marker.strip()}" if marker else ""): version
        for name, version, marker in re.findall(r"^([\w.-]+)==(\S+)(?: ; ([^\\\n]+))?", text, re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("course.lock", COURSE),
        ("test.lock", COURSE + PROJECT["optional-dependencies"]["site"] + PROJECT["optional-dependencies"]["test"]),
    ],
)
def test_lock_holds_what_the_course_and_the_pipeline_ask_for(lock: str, requirements: list[str]) -> None:
    versions = locked(lock)
    for requirement in map(Requirement, requirements):
        found = {v for name, v in versions.items() if name.split(" ; ")[0] == canonicalize_name(requirement.name)}
        assert found, f"{requirement.name} is not in {lock}: make lock"
        assert all(requirement.specifier.contains(version) for version in found), (
            f"{requirement} is not what {lock} has: make lock"
        )


def test_tests_run_with_the_versions_that_learners_get() -> None:
    assert locked("course.lock").items() <= locked("test.lock").items()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_hashes(lock: Path) -> None:
    entries = re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE)[1:]
    assert entries
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]


def test_packages_are_built_with_a_locked_setuptools() -> None:
    assert "setuptools" in locked("course.lock")  # the build constraints of set-up and Binder


def test_conda_gets_the_locked_versions() -> None:
    assert locked("pins.txt") == locked("test.lock"), "make lock"


def test_conda_and_binder_use_them() -> None:
    conda, binder = (yaml.safe_load((ROOT / name).read_text()) for name in ("environment.yml", "binder/environment.yml"))
    assert conda["dependencies"][-1] == {"pip": ["-c requirements/pins.txt", "-e .", "-e ./pipeline", "nbval"]}
    assert [one for one in conda["dependencies"] if isinstance(one, str)] == binder["dependencies"]
    assert conda["channels"] == binder["channels"]
    post_build = (ROOT / "binder/postBuild").read_text()
    assert re.findall(r"--require-hashes -r (\S+)", post_build) == ["requirements/installer.lock", "requirements/course.lock"]
    assert "--build-constraints requirements/course.lock" in post_build


def test_the_supported_pythons_are_the_same_everywhere() -> None:
    oldest, newest = PYTHONS
    supported = SpecifierSet(PROJECT["requires-python"])
    assert SpecifierSet(f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}") == supported
    assert f"OLDEST={oldest[1]} NEWEST={newest[1]}" in (ROOT / "tools/setup.sh").read_text()
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][0]
    assert supported.contains(conda.removeprefix("python="))
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == [".".join(map(str, version)) for version in PYTHONS]


def test_no_file_names_a_registry_or_a_folder_of_this_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    here = str(ROOT) + "/"
    named = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        text = path.read_text(errors="ignore") if path.is_file() else ""
        named += [f"{name}: {word}" for word in (*REGISTRIES, here) if word in text]
    assert not named
