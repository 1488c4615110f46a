"""JupyterLab among the learner's own settings, kernels and folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.services.config.manager import ConfigManager

from kafkalab.cli.lab import _why_no_server
from kafkalab.cli.own_jupyter import (
    SETTINGS,
    broken_settings,
    own_settings,
    prefer_course,
    use_large_type,
    use_writable_folders,
)

FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FOLDERS:
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    monkeypatch.setenv("JUPYTER_PATH", "")
    return tmp_path / "JUPYTER_CONFIG_DIR"


@pytest.mark.parametrize("variable", ["JUPYTER_PATH", "JUPYTER_DATA_DIR"])
def test_the_courses_kernel_wins(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = tmp_path / "foreign" / "kernels" / "python3"
    foreign.mkdir(parents=True)
    (foreign / "kernel.json").write_text('{"argv": ["false"], "display_name": "foreign", "language": "python"}')
    monkeypatch.setenv(variable, str(tmp_path / "foreign"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    prefer_course()
    prefer_course()  # once is enough
    assert KernelSpecManager().get_kernel_spec("python3").argv[:4] == ["python", "-P", "-m", "kafkalab.kernel"]
    assert os.environ["JUPYTER_PATH"].split(os.pathsep).count(str(SETTINGS)) == 1


def test_large_type_is_for_those_who_ask_for_it_and_keeps_the_courses_other_settings() -> None:
    def found(name: str) -> dict[str, object]:
        return ConfigManager(config_dir_name="labconfig").get(name)

    prefer_course()
    assert "kafkalabProjector" not in found("page_config")
    others = found("default_setting_overrides")
    use_large_type()
    assert found("page_config")["kafkalabProjector"] == "true"
    assert found("default_setting_overrides").items() > others.items()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("jupyter_lab_config.py", "c.ServerApp.port = = 3"),
        ("jupyter_server_config.py", "c.ServerApp.port = 3\0"),
        ("jupyter_config.json", '{"ServerApp": {'),
        ("jupyter_server_config.json", ""),
        ("jupyter_server_config.d/mine.json", "no JSON"),
    ],
)
def test_settings_that_cannot_be_read_are_named(name: str, text: str, own: Path) -> None:
    (own / name).parent.mkdir(exist_ok=True)
    (own / name).write_text(text)
    (line,) = broken_settings()
    assert str(own / name) in line and "Fix that file" in line


def test_other_settings_are_left_alone(own: Path) -> None:
    (own / "jupyter_server_config.py").write_text('c.IdentityProvider.token = "mine"')
    (own / "jupyter_server_config.json").write_text("{}")
    prefer_course()
    assert list(broken_settings()) == []
    assert {file.parent for file in own_settings()} >= {own} and SETTINGS not in {file.parent for file in own_settings()}


def test_a_server_that_does_not_start_names_the_settings(own: Path) -> None:
    (own / "jupyter_server_config.py").write_text('c.ServerApp.kernel_manager_class = "absent.Manager"')
    assert f"fix {own / 'jupyter_server_config.py'}, or rename it" in _why_no_server(SystemExit(1))
    assert "ModuleNotFoundError: no absent" in _why_no_server(ModuleNotFoundError("no absent"))


def test_folders_that_cannot_be_written_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "file" / "runtime"))
    assert use_writable_folders(tmp_path / "instead") == [tmp_path / "file" / "runtime"]
    assert Path(os.environ["JUPYTER_RUNTIME_DIR"]).is_dir()
    assert os.environ["JUPYTER_DATA_DIR"] == str(tmp_path / "JUPYTER_DATA_DIR")
