"""Unit tests start no broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from kafkalab import running
from kafkalab.cluster.backends.docker import DockerBackend
from kafkalab.cluster.backends.local import LocalBackend
from kafkalab.widgets.live import Live
from kafkalab.widgets.panel import ClusterPanel
from widget_support import FakeCluster, Shown


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that starts one."""

    def refuse(self: object) -> None:
        pytest.fail("a unit test starts no broker: its place is another folder of tests/")

    for backend in (LocalBackend, DockerBackend):
        monkeypatch.setattr(backend, "launch", refuse)


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A notebook's IPython."""
    shell = InteractiveShell()
    yield shell
    shell.history_manager.end_session()


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Three brokers that only widgets see."""
    fake = FakeCluster()
    yield fake
    fake.stop()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What cells show from now on."""
    forms: Shown = {}

    def display(form: dict[str, str], *, raw: bool, display_id: str) -> None:
        forms.setdefault(display_id, []).append(form)

    for name in ("display", "update_display"):
        monkeypatch.setattr(f"kafkalab.widgets.live.{name}", display)
    return forms


@pytest.fixture(autouse=True)
def not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let displays say what they say once per kernel."""
    monkeypatch.setattr(Live, "_told", set())


@pytest.fixture
def progress_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where progress is kept, empty."""
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "progress"))
    return tmp_path / "progress"


@pytest.fixture
def registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers without what other tests left in them."""
    for name in running.__all__:
        if isinstance(getattr(running, name), running.Register):
            monkeypatch.setattr(running, name, running.Register())


@pytest.fixture
def panel(registers: None, monkeypatch: pytest.MonkeyPatch) -> ClusterPanel:
    """A panel beside the notebook."""
    panel = ClusterPanel()
    monkeypatch.setattr(Live, "beside", panel)
    return panel
