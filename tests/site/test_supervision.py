"""The programs of an installation, as supervisord and systemd are told of them."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from tensorhive_site import supervision

UNITS = Path(__file__).resolve().parent.parent.parent / "deploy" / "systemd"


def configured() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    parser.read_string(supervision.configuration())
    return parser


def test_only_leaders_are_told_to_stop_and_whole_groups_are_killed() -> None:
    for program in supervision.PROGRAMS:
        options = configured()[f"program:{program.name}"]
        assert options["stopasgroup"] == "false"
        assert options["killasgroup"] == "true"
        assert options["autorestart"] == "true"


def test_the_web_process_alone_has_the_role_that_knows_no_keys() -> None:
    roles = {
        program.name: configured()[f"program:{program.name}"]["environment"]
        for program in supervision.PROGRAMS
    }
    assert roles.pop("web") == 'TENSORHIVE_ROLE="web"'
    assert set(roles.values()) == {'TENSORHIVE_ROLE="worker"'}


def test_nothing_listens_but_the_web_server() -> None:
    assert not [name for name in configured().sections() if "http" in name]


def unit(name: str) -> dict[str, list[str]]:
    """Option -> its values, in order; systemd allows an option several times."""
    found: dict[str, list[str]] = {}
    for option, value in re.findall(r"^(\w+)=(.*)$", (UNITS / name).read_text(), re.MULTILINE):
        found.setdefault(option, []).append(value)
    return found


@pytest.mark.parametrize("program", supervision.PROGRAMS, ids=lambda program: program.name)
def test_systemd_runs_the_same_programs(program: supervision.Program) -> None:
    is_cluster = "run_cluster" in program.arguments
    name = "tensorhive-cluster@.service" if is_cluster else f"tensorhive-{program.name}.service"
    options = unit(name)
    command = options["ExecStart"][0].replace("%i", program.name)
    assert command == f"/opt/tensorhive/.venv/bin/python {program.arguments}"
    assert options["KillMode"] == ["mixed"]
    assert int(options["TimeoutStopSec"][0]) >= program.stop_seconds
    assert f"TENSORHIVE_ROLE={program.role}" in options["Environment"][0]
    wanted = f"tensorhive-cluster@{program.name}.service" if is_cluster else name
    assert wanted in " ".join(unit("tensorhive.target")["Wants"])


def test_the_web_service_has_an_account_of_its_own_and_no_way_to_the_keys() -> None:
    web, cluster = unit("tensorhive-web.service"), unit("tensorhive-cluster@.service")
    assert web["User"] != cluster["User"]
    assert web["InaccessiblePaths"] == ["-/var/lib/tensorhive"]
    assert "DATA_DIR=/var/lib/tensorhive" in cluster["Environment"][0]


def test_all_programs_stop_together() -> None:
    """supervisord stops one group after the other, which would add up their times."""
    groups = [name for name in configured().sections() if name.startswith("group:")]
    assert len(groups) == 1
    names = configured()[groups[0]]["programs"].split(",")
    assert names == [program.name for program in supervision.PROGRAMS]
