"""The hub of a class: each learner's network, limits and links. `tests/hub` runs one."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml

from kafkalab.cli.hosted.notice import NOTICE_FILE
from kafkalab.course import find_course
from kafkalab_hub import network as network_module
from kafkalab_hub.__main__ import TOKEN, main
from kafkalab_hub.client import Hub, HubError
from kafkalab_hub.configuration import CULLING, PORT, UNIT, ClassHub, add_culler, configure, first_page, link, pre_spawn
from kafkalab_hub.control_group import ControlGroup
from kafkalab_hub.measure import Measured, table
from kafkalab_hub.network import Network, NetworkError

HUB = Path(__file__).parents[2] / "hub"


class Machine:
    """Stands in for ``ip`` and ``nft``: it notes what they are told, and knows which namespaces there are."""

    def __init__(self, folder: Path) -> None:
        self.namespaces = folder / "netns"
        self.namespaces.mkdir()
        self.told: list[str] = []
        self.outside: list[bool] = []  # whether each command left the mounts of the hub's service
        self.refuses = "nothing"

    def __call__(self, command: Sequence[str], input: str = "", **_: Any) -> SimpleNamespace:
        self.outside.append(command[0] == "nsenter")
        command = command[command.index("--") + 1 :] if self.outside[-1] else command
        said = " ".join(command)
        self.told += [said, *input.splitlines()]
        if any(self.refuses in line for line in (said, *input.splitlines())):
            return SimpleNamespace(returncode=2, stdout="", stderr="RTNETLINK answers: Operation not permitted\n")
        if command[:3] == ["ip", "netns", "add"]:
            (self.namespaces / command[3]).touch()
        if command[:3] == ["ip", "netns", "delete"]:
            (self.namespaces / command[3]).unlink()
        number = int(command[2].removeprefix("kafkalab-")) if command[1] == "-n" else 0
        return SimpleNamespace(returncode=0, stdout=f"eth0@if7 UP 10.111.0.{4 * number + 2}/30 \n", stderr="")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(subprocess, "run", machine)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(network_module, "_NAMESPACES", machine.namespaces)
    monkeypatch.setattr(network_module, "_SYSTEMD", tmp_path / "run/systemd/system")
    return machine


@pytest.fixture
def network(tmp_path: Path) -> Network:
    return Network(state=tmp_path / "run/networks.json")


# -- networks -----------------------------------------------------------------------------------------------------


def test_each_learner_has_a_network_and_keeps_it(network: Network, machine: Machine) -> None:
    ada, bob = network.create("ada"), network.create("bob")
    assert (ada.namespace, str(ada.outer), str(ada.inner)) == ("kafkalab-0", "10.111.0.1", "10.111.0.2")
    assert (bob.namespace, str(bob.outer), str(bob.inner)) == ("kafkalab-1", "10.111.0.5", "10.111.0.6")
    told = len(machine.told)
    assert network.create("ada") == ada
    assert len(machine.told) == told + 1  # it was whole, and was only asked
    network.remove("ada")
    assert not ada.path.exists()
    assert network.create("eve").namespace == "kafkalab-0"  # which is free again
    network.remove("nobody")


def test_a_learners_name_goes_into_no_command(network: Network, machine: Machine) -> None:
    network.create("../etc; reboot\n{USERNAME}")
    assert not [line for line in machine.told if "reboot" in line]


def test_routes_lead_to_the_hub_and_to_no_other_learner(network: Network) -> None:
    routes = network.routes(network.seat(3))
    assert routes == ["route add 10.111.255.254/32 via 10.111.0.13", "route add prohibit 10.111.0.0/16"]
    internet = Network(internet=True).routes(network.seat(3))
    assert internet == [*routes, "route add prohibit 169.254.0.0/16", "route add default via 10.111.0.13"]


def test_with_internet_the_machine_passes_nothing_between_learners() -> None:
    rules = Network(internet=True).rules()
    assert "ip saddr 10.111.0.0/16 ip daddr 10.111.0.0/16 drop" in rules
    assert rules.index("drop") < rules.index("masquerade")


def test_what_the_machine_refuses_is_said_and_leaves_nothing(network: Network, machine: Machine) -> None:
    machine.refuses = "route add"
    with pytest.raises(NetworkError, match=r"ip -n kafkalab-0 -batch -: RTNETLINK answers: Operation not permitted"):
        network.create("ada")
    assert list(machine.namespaces.iterdir()) == []
    machine.refuses = "nothing"
    assert network.create("bob").namespace == "kafkalab-0"


def test_a_half_made_network_is_made_anew(network: Network, machine: Machine) -> None:
    seat = network.create("ada")
    told = len(machine.told)
    seat.path.unlink()  # as after a crash
    assert network.create("ada") == seat
    assert "ip netns add kafkalab-0" in machine.told[told:]


def test_a_full_range_of_addresses_is_said(tmp_path: Path, machine: Machine) -> None:
    small = Network(IPv4Network("10.9.0.0/28"), state=tmp_path / "state")
    for learner in ("ada", "bob", "eve"):
        small.create(learner)
    with pytest.raises(NetworkError, match=r"10.9.0.0/28 has room for 3 learners. Give the class a larger range"):
        small.create("mallory")


def test_no_seat_has_the_hubs_address(network: Network) -> None:
    last = network.seat(network.seats - 1)
    assert network.hub not in (last.outer, last.inner)
    assert network.hub not in IPv4Network(f"{last.outer}/30", strict=False)


def test_a_missing_command_is_named(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(NetworkError, match="ip isn't installed. On Debian and Ubuntu: apt-get install iproute2"):
        network.prepare()


def test_systemd_finds_the_namespaces_that_a_service_of_its_makes(
    tmp_path: Path, machine: Machine, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Littlest JupyterHub's service has mounts of its own, and a namespace's file is a mount."""
    network.create("ada")
    assert not any(machine.outside)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    machine.outside.clear()
    with_internet = Network(internet=True, state=network.state)
    with_internet.prepare()
    with_internet.create("ada")
    with_internet.create("bob")
    with_internet.remove("ada")
    assert machine.outside
    assert all(machine.outside)
    assert "sysctl --quiet --write net.ipv4.ip_forward=1" in machine.told


# -- control groups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version_1", "files"),
    [
        (True, {"memory.limit_in_bytes": "1000", "memory.memsw.limit_in_bytes": "1000"}),
        (False, {"memory.max": "1000", "memory.swap.max": "0"}),
    ],
)
def test_a_control_group_limits_memory_and_swap(tmp_path: Path, version_1: bool, files: dict[str, str]) -> None:
    group = ControlGroup("ada", tmp_path)
    if version_1:
        (tmp_path / "memory").mkdir()
    group.folder.mkdir()
    for name in files:
        (group.folder / name).touch()
    group.create(1000)
    assert {name: (group.folder / name).read_text() for name in files} == files


def test_a_control_group_without_processes_is_removed(tmp_path: Path) -> None:
    group = ControlGroup("ada", tmp_path)
    group.create(None)
    assert group.processes == []
    group.remove()
    assert not group.folder.exists()
    group.remove()


# -- configuration ------------------------------------------------------------------------------------------------


class Config(SimpleNamespace):
    """As JupyterHub's: each class has its settings when it's first named."""

    def __getattr__(self, name: str) -> SimpleNamespace:
        setattr(self, name, SimpleNamespace(services=[], load_roles=[]))
        return self.__dict__[name]


def spawner(admin: bool = False, systemd: bool = True) -> SimpleNamespace:
    more = {"unit_extra_properties": {"Nice": "5"}} if systemd else {}
    return SimpleNamespace(user=SimpleNamespace(name="ada", admin=admin), name="", mem_limit=3 << 30, **more)


def test_a_hub_listens_for_its_learners_where_they_reach_it(network: Network, machine: Machine) -> None:
    c = Config()
    configure(c, ClassHub(network=network))
    assert machine.told == ["ip address replace 10.111.255.254/32 dev lo"]
    assert (c.JupyterHub.hub_ip, c.JupyterHub.hub_port) == ("10.111.255.254", PORT)
    assert c.Spawner.cmd == ["/opt/kafkalab/course/hub/start"]
    assert "KAFKALAB_SHARED_MACHINE" not in c.Spawner.environment
    server = spawner()
    c.Spawner.pre_spawn_hook(server)
    assert server.ip == "10.111.0.2"
    c.Spawner.post_stop_hook(server)
    assert json.loads(network.state.read_text()) == {}


def test_without_networks_the_learners_servers_know(machine: Machine) -> None:
    c = Config()
    configure(c, ClassHub(network=None))
    assert machine.told == []
    assert c.Spawner.environment["KAFKALAB_SHARED_MACHINE"] == "1"
    assert not hasattr(c.Spawner, "post_stop_hook")


def test_a_unit_joins_the_namespace_and_has_no_swap(network: Network, machine: Machine) -> None:
    server = spawner()
    pre_spawn(server, ClassHub(network=network))
    namespace = str(machine.namespaces / "kafkalab-0")
    assert server.unit_extra_properties == {"Nice": "5", **UNIT, "NetworkNamespacePath": namespace}
    assert all(isinstance(value, str) for value in server.unit_extra_properties.values())  # it expands {USERNAME} in each
    assert server.mem_limit == 3 << 30


def test_an_instructor_has_more_memory(network: Network, machine: Machine) -> None:
    server = spawner(admin=True, systemd=False)
    pre_spawn(server, ClassHub(network=network, instructor_memory="8G"))
    assert server.mem_limit == "8G"
    assert server.namespace == machine.namespaces / "kafkalab-0"


def test_a_break_costs_no_cluster_and_nothing_runs_for_ever() -> None:
    assert CULLING["timeout"] >= 90 * 60 > 20 * 60
    assert CULLING["timeout"] + 2 * CULLING["every"] <= 3 * 3600  # a server that nobody uses
    assert 8 * 3600 <= CULLING["max_age"] <= 12 * 3600  # longer than a day of class, and not for ever
    c = Config()
    add_culler(c)
    [service] = c.JupyterHub.services
    assert service["command"][1:] == ["-m", "jupyterhub_idle_culler", "--timeout=7200", "--cull-every=300", "--max-age=36000"]


def test_a_link_opens_a_notebook_of_the_workspace() -> None:
    chapter = "notebooks/02_cluster_failover.ipynb"
    assert chapter in find_course().content.files()
    assert first_page().removeprefix("/lab/tree/") in find_course().content.files()
    assert link("https://hub.example.org/", chapter) == f"https://hub.example.org/hub/user-redirect/lab/tree/{chapter}"


# -- The Littlest JupyterHub --------------------------------------------------------------------------------------


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plug-in, with a stand-in for what it imports from The Littlest JupyterHub."""
    hooks, configurer = types.ModuleType("tljh.hooks"), types.ModuleType("tljh.configurer")
    hooks.hookimpl = lambda function: function  # type: ignore[attr-defined]
    configurer.load_config = dict  # type: ignore[attr-defined]
    for name, module in {"tljh": types.ModuleType("tljh"), "tljh.hooks": hooks, "tljh.configurer": configurer}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "kafkalab_hub.tljh_plugin", raising=False)
    return importlib.import_module("kafkalab_hub.tljh_plugin")


def test_tljh_finds_the_plugin() -> None:
    entry = tomllib.loads((HUB / "pyproject.toml").read_text())["project"]["entry-points"]["tljh"]["kafkalab"]
    assert (HUB / entry.replace(".", "/")).with_suffix(".py").exists()


def test_tljh_gets_limits_unless_somebody_has_set_them(plugin: Any) -> None:
    config: dict[str, Any] = {"limits": {"memory": "2G"}, "services": {"cull": {"timeout": 60}}}
    plugin.tljh_config_post_install(config)
    assert config == {"limits": {"memory": "2G"}, "services": {"cull": {**CULLING, "timeout": 60}}}
    fresh: dict[str, Any] = {}
    plugin.tljh_config_post_install(fresh)
    assert fresh == {"limits": {"memory": "3G"}, "services": {"cull": dict(CULLING)}}


def test_tljhs_configuration_describes_the_class(plugin: Any) -> None:
    assert plugin.class_hub({"limits": {"memory": None}}) == ClassHub()
    given = {"internet": True, "addresses": "10.9.0.0/16", "instructor_memory": "6G", "cache": "/srv/cache"}
    hub = plugin.class_hub({"limits": {"memory": "2G"}, "kafkalab": given})
    assert (hub.memory, hub.instructor_memory, hub.cache) == ("2G", "6G", Path("/srv/cache"))
    assert hub.network == Network(IPv4Network("10.9.0.0/16"), internet=True)


def test_a_slip_in_tljhs_configuration_is_said(plugin: Any) -> None:
    with pytest.raises(ValueError, match=r"kafkalab.memory, which means nothing. These do: addresses, cache, course, "):
        plugin.class_hub({"kafkalab": {"memory": "2G"}})


# -- the command --------------------------------------------------------------------------------------------------


def test_links_name_each_chapter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["links", "https://hub.example.org", "--course", str(HUB.parent)]) == 0
    lines = capsys.readouterr().out.splitlines()
    chapters = [name for name in find_course().content.files() if name.startswith("notebooks/") and name.endswith(".ipynb")]
    assert [line.rpartition("/lab/tree/")[2].rstrip(")") for line in lines] == sorted(chapters)
    assert main(["links", "https://hub.example.org", "--course", "/nowhere"]) == 1
    assert "--course names the clone" in capsys.readouterr().err


def test_a_command_without_a_token_says_where_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(SystemExit):
        main(["warm", "https://hub.example.org", "ada"])
    assert "make a token on the page https://hub.example.org/hub/token" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["verify", "https://hub.example.org", "ada"])
    assert "verify needs two learners" in capsys.readouterr().err


class Learner:
    """Stands in for a server that runs. Bob reaches what `reached` says."""

    def __init__(self, name: str, reached: Sequence[int]) -> None:
        self.name = name
        self._reached = reached

    @contextmanager
    def kernel(self) -> Iterator[Learner]:
        yield self

    def run(self, code: str, _: float) -> str:
        if "create_connection" in code:
            targets = json.loads(re.search(r"json.loads\('(.*)'\)", code)[1])
            return json.dumps(["" if port in self._reached else "refused" for _, port in targets])
        if "/net/" in code:
            return json.dumps([["10.111.0.2", 8888], ["127.0.0.1", 9092]] if self.name == "ada" else [["127.0.0.1", 9092]])
        return ""


@pytest.mark.parametrize(
    ("reached", "status", "says"),
    [
        ((), 0, "✓ ada listens at 2 addresses. bob tried 2 and reached none."),
        ((9092,), 1, "✗ bob reaches 1 of ada's ports: 10.111.0.2:9092"),
    ],
)
def test_verify_says_what_is_reached(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], reached: Sequence[int], status: int, says: str
) -> None:
    """Bob's own broker at the same port of his own network isn't Ada's, so nothing is tried there."""
    monkeypatch.setenv(TOKEN, "token")
    monkeypatch.setattr(Hub, "start", lambda _, name: Learner(name, reached))
    assert main(["verify", "https://hub.example.org", "ada", "bob"]) == status
    assert capsys.readouterr().out == f"{says}\n"


def test_warm_names_who_has_no_server_and_starts_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(_: Hub, name: str) -> None:
        if name == "bob":
            raise HubError("no such user")

    monkeypatch.setenv(TOKEN, "token")
    monkeypatch.setattr(Hub, "start", start)
    assert main(["warm", "https://hub.example.org", "ada", "bob"]) == 1
    assert capsys.readouterr().out == "✓ ada after 0 s\n✗ bob: no such user\n"


def test_a_hub_that_isnt_there_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(TOKEN, "token")
    assert main(["verify", "http://127.0.0.1:9", "ada", "bob"]) == 1
    assert capsys.readouterr().err.startswith("http://127.0.0.1:9/hub/api/users/ada doesn't answer: ")


def test_measurements_become_a_table() -> None:
    rows = [Measured("ada", 9.6, 70.2, 1_250_000_000, ""), Measured("bob", 10.2, 3.0, 10**9, "a\n✗ 02.ipynb: In [1]: no\nb")]
    assert table(rows).splitlines()[2:] == [
        "| ada | 10 s | 70 s | 1.25 GB | ✓ |",
        "| bob | 10 s | 3 s | 1.00 GB | ✗ 02.ipynb: In [1]: no |",
    ]


# -- Kubernetes ---------------------------------------------------------------------------------------------------


def test_kubernetes_has_the_same_limits_and_the_same_first_page() -> None:
    values = yaml.safe_load((HUB / "k8s/values.yaml").read_text())
    learner = values["singleuser"]
    assert learner["memory"] == {"guarantee": ClassHub.memory, "limit": ClassHub.memory}
    assert learner["defaultUrl"] == first_page()
    assert learner["cmd"] == [str(ClassHub.course / "hub/start")]
    assert learner["extraEnv"] == ClassHub().variables()
    assert learner["networkPolicy"]["enabled"] is True
    cull = values["cull"]
    assert (cull["timeout"], cull["every"], cull["maxAge"]) == tuple(CULLING.values())
    image = (HUB / "Dockerfile").read_text()
    assert all(f"{name}={value}" in image for name, value in learner["extraEnv"].items())
    c = Config()
    configure(c, ClassHub(network=None))
    assert values["hub"]["config"]["KubeSpawner"]["http_timeout"] == c.Spawner.http_timeout


def test_the_chart_knows_every_name_in_the_values() -> None:
    """The chart rejects names that it doesn't know, and `helm` then installs nothing.

    Its schema of version 4.4.0 is kept here without what it requires, which its own values have, and only where it meets ours.
    """
    schema = json.loads(Path(__file__).with_name("zero_to_jupyterhub.json").read_text())
    values = yaml.safe_load((HUB / "k8s/values.yaml").read_text())
    jsonschema.Draft7Validator(schema).validate(values)
    values["singleuser"]["memory"]["limits"] = "3G"
    with pytest.raises(jsonschema.ValidationError, match="'limits' was unexpected"):
        jsonschema.Draft7Validator(schema).validate(values)


def test_an_instructor_has_more_memory_on_kubernetes() -> None:
    [code] = yaml.safe_load((HUB / "k8s/values.yaml").read_text())["hub"]["extraConfig"].values()
    c = Config()
    exec(code, {"c": c})
    learner, instructor = spawner(), spawner(admin=True)
    for server in (learner, instructor):
        c.KubeSpawner.pre_spawn_hook(server)
    assert learner.mem_limit == 3 << 30
    assert (instructor.mem_guarantee, instructor.mem_limit) == (ClassHub.instructor_memory, ClassHub.instructor_memory)


def test_nobody_logs_in_on_kubernetes_whom_an_administrator_hasnt_added() -> None:
    """The chart's default authenticator lets anybody in, as anybody."""
    config = yaml.safe_load((HUB / "k8s/values.yaml").read_text())["hub"]["config"]
    assert config["JupyterHub"]["authenticator_class"] == "firstuse"
    assert config["FirstUseAuthenticator"]["create_users"] is False
    assert config["Authenticator"]["admin_users"]


# -- a learner's server -------------------------------------------------------------------------------------------


def test_start_makes_the_workspace_and_becomes_the_server(tmp_path: Path) -> None:
    programs = tmp_path / "env/bin"
    programs.mkdir(parents=True)
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    server = programs / "jupyterhub-singleuser"
    server.write_text('#!/bin/sh\npwd\necho "$@"\nenv\n')
    server.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "KAFKALAB_CACHE") if name in os.environ}
    environment = {**kept, "HOME": str(home), "KAFKALAB_ENVIRONMENT": str(tmp_path / "env")}
    done = subprocess.run([HUB / "start", "--debug"], cwd=home, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder, arguments, *variables = done.stdout.splitlines()
    assert folder == str(home / "kafkalab")
    assert arguments == "--debug"
    assert (home / "kafkalab/notebooks/00_start_here.ipynb").exists()
    settings = dict(variable.split("=", 1) for variable in variables if "=" in variable)
    assert (settings["KAFKALAB_BACKEND"], settings["TMPDIR"]) == ("local", "/var/tmp")
    socket = f"{settings['JUPYTER_RUNTIME_DIR']}/kernel-{'0' * 36}-ipc-1".replace(str(home), f"/home/{'x' * 32}")
    assert len(socket) <= 107  # for the longest name of a user
    assert str(HUB / "jupyter") in settings["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    transport = json.loads((HUB / "jupyter/jupyter_server_config.json").read_text())
    assert transport["KernelManager"]["transport"] == "ipc"
    assert "Your server for the class" in (home / "kafkalab" / NOTICE_FILE).read_text()
