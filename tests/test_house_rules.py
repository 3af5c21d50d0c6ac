"""Rules of the house that a reader of single files does not see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# An app may import those to its left.
APPS = ["monitoring", "accounts", "reservations", "jobs", "tensorhive_site"]
# Where a process is signalled, and why.
MAY_KILL = {
    "tensorhive_site/run_cluster.py": "ends the process group that it started",
    "tensorhive_site/watchdog.py": "tells a cluster's leader to start it anew",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def called(tree: ast.Module) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


every_module = pytest.mark.parametrize(
    ("name", "tree"), [pytest.param(name, tree, id=name) for name, tree in modules()]
)


@every_module
def test_imports_point_to_the_left(name: str, tree: ast.Module) -> None:
    own = name.split("/")[0]
    allowed = set(APPS[: APPS.index(own) + 1])
    wrong = {one.split(".")[0] for one in imported(tree)} & set(APPS) - allowed
    if name == "tensorhive_site/settings.py":
        wrong = set()
    assert wrong == set()


@every_module
def test_only_the_door_knows_ssh(name: str, tree: ast.Module) -> None:
    tools = {"fabric", "paramiko", "invoke"}
    used = {one.split(".")[0] for one in imported(tree)} & tools
    # The demo's hosts are the other side of the door.
    assert used == set() or name.startswith(("monitoring/ssh/", "tensorhive_site/demo/server"))
    assert "AutoAddPolicy" not in ast.dump(tree)


@every_module
def test_nothing_of_ours_runs_a_shell_or_signals_processes(name: str, tree: ast.Module) -> None:
    calls = called(tree)
    assert not calls & {"os.system", "os.popen", "subprocess.getoutput"}
    shells = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(word.arg == "shell" and ast.unparse(word.value) == "True" for word in node.keywords)
    ]
    assert shells == []
    if calls & {"os.kill", "os.killpg"}:
        assert name in MAY_KILL
