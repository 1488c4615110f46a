"""The workflows can be read, call only what there is, use actions by their commit, and may do no more than they must."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
_EXPRESSION = re.compile(r"\${{.*?}}")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

# What a job may do besides reading, each for a reason that its workflow says.
MAY = {
    ("site.yml", "publish"): {"pages": "write", "id-token": "write"},
    ("release.yml", "release"): {"contents": "write"},
    ("release.yml", "image"): {"contents": "read", "packages": "write"},
}

# Inputs that the actions' action.yml has, of which the workflows use these. GitHub ignores any other, with a mere warning.
INPUTS: dict[str, set[str]] = {
    "actions/checkout": set(),
    "actions/setup-python": {"python-version"},
    "actions/cache": {"path", "key"},
    "actions/upload-artifact": {"name", "path", "if-no-files-found"},
    "actions/download-artifact": {"name", "path"},
    "actions/upload-pages-artifact": {"path"},
    "actions/deploy-pages": set(),
}


def problems(name: str, text: str) -> list[str]:
    """What is wrong with a workflow."""
    workflow = yaml.safe_load(text)
    found = []
    if workflow.get("permissions") != {"contents": "read"}:
        found.append(f"by default its jobs may {workflow.get('permissions')}")
    for job_name, job in workflow["jobs"].items():
        if job.get("permissions", {}) != MAY.get((name, job_name), {}):
            found.append(f"{job_name} may {job.get('permissions')}")
        if "timeout-minutes" not in job:
            found.append(f"{job_name} may take for ever")
        needed = job.get("needs", [])
        others = {needed} if isinstance(needed, str) else set(needed)
        found += [f"{job_name} needs {other}" for other in sorted(others - workflow["jobs"].keys())]
        for step in job["steps"]:
            if (action := step.get("uses", "").partition("@")[0]) in INPUTS:
                found += [f"{action} has no input {name}" for name in sorted(step.get("with", {}).keys() - INPUTS[action])]
        scripts = [step["run"] for step in job["steps"] if "run" in step]
        for script in scripts:
            if subprocess.run(["bash", "-n"], input=_EXPRESSION.sub("x", script), capture_output=True, text=True).returncode:
                found.append(f"{job_name} has a script that bash can't read")
            found += [f"make has no {target}" for target in re.findall(r"\bmake ([a-z-]+)", script) if target not in TARGETS]
            files = re.findall(r"(?<![\w/.])((?:tools|hub|src|docs)/[\w./-]+)", script)
            found += [f"there's no {file}" for file in files if not (ROOT / file).exists()]
            # What others choose, such as a branch's name, would run as part of the script.
            found += [f"{job_name} puts {value} into a script" for value in re.findall(r"\${{ *(github\.[\w.]+)", script)]
    used = re.findall(r"uses: *(.+)", text)
    found += [
        f"{action} isn't pinned" for action in used if not re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    ]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_sound(path: Path) -> None:
    assert not problems(path.name, path.read_text())


def test_a_commit_of_an_action_is_the_same_everywhere() -> None:
    used = {use for path in WORKFLOWS for use in re.findall(r"uses: *(.+)", path.read_text())}
    assert len({use.partition("@")[0] for use in used}) == len(used)


def test_an_unsound_workflow_is_found() -> None:
    text = """
permissions: write-all
jobs:
  spoil:
    permissions: {contents: write}
    needs: mischief
    steps:
      - uses: actions/checkout@v7
        with: {branch: main}
      - run: if mischief
      - run: make mischief
      - run: python tools/mischief.py ${{ github.head_ref }}
"""
    assert problems("spoil.yml", text) == [
        "by default its jobs may write-all",
        "spoil may {'contents': 'write'}",
        "spoil may take for ever",
        "spoil needs mischief",
        "actions/checkout has no input branch",
        "spoil has a script that bash can't read",
        "make has no mischief",
        "there's no tools/mischief.py",
        "spoil puts github.head_ref into a script",
        "actions/checkout@v7 isn't pinned",
    ]
