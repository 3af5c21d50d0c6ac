"""The decision who intrudes: a pure function, tried with every kind of process and right."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reservations.enforcement import (
    Process,
    Right,
    Rules,
    complete_gpus,
    confirmed,
    find_intrusions,
    processes_of,
    warning_text,
)

GPU, OTHER_GPU = "GPU-1", "GPU-2"
UNTIL = dt.datetime(2026, 12, 1, 18, tzinfo=dt.UTC)
ALICES = Right(reservation_id=7, owner_login="alice", owner="alice", ends_at=UNTIL)


def process(login: str = "bob", uid: int = 1001, **fields: Any) -> Process:
    values = {"gpu_uuid": GPU, "boot_id": "b", "pid": 4242, "start_ticks": 99}
    return Process(**{**values, "uid": uid, "login": login, **fields})


def row(**fields: Any) -> dict[str, Any]:
    """A process as a stored answer holds it."""
    values: dict[str, Any] = {
        "gpu_uuid": GPU,
        "pid": 4242,
        "start_ticks": 99,
        "uid": 1001,
        "login": "bob",
        "command": "python train.py",
        "owner_confidence": "certain",
    }
    return {**values, **fields}


def answer(*rows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    sections = {name: {"state": "ok"} for name in ("gpus", "processes", "owners")}
    return {"boot_id": "b", "sections": sections, "processes": list(rows), **fields}


@pytest.mark.parametrize(
    ("who", "rights", "level", "intrudes"),
    [
        pytest.param(process("bob"), {GPU: ALICES}, 1, True, id="stranger on a reserved GPU"),
        pytest.param(process("alice"), {GPU: ALICES}, 1, False, id="the owner"),
        pytest.param(process("bob"), {OTHER_GPU: ALICES}, 1, False, id="free GPU at level 1"),
        pytest.param(process("bob"), {}, 2, True, id="free GPU at level 2"),
        pytest.param(process("alice"), {GPU: ALICES}, 2, False, id="the owner at level 2"),
        pytest.param(process("bob"), {GPU: ALICES}, 0, False, id="level 0"),
        pytest.param(process("root", uid=0), {GPU: ALICES}, 1, False, id="root at level 1"),
        pytest.param(process("root", uid=0), {GPU: ALICES}, 2, True, id="root at level 2"),
        pytest.param(process("sys", uid=999), {GPU: ALICES}, 1, False, id="system account"),
        pytest.param(process("watcher"), {GPU: ALICES}, 2, False, id="exempt login"),
    ],
)
def test_who_intrudes(who: Process, rights: dict[str, Right], level: int, intrudes: bool) -> None:
    rules = Rules(level=level, uid_min=1000, exempt_logins=frozenset({"watcher"}))
    assert bool(find_intrusions([who], rights, rules=rules)) is intrudes


def test_own_processes_of_the_product_are_never_intrusions() -> None:
    found = find_intrusions(
        [process()], {GPU: ALICES}, rules=Rules(level=2), own={process().identity}
    )
    assert found == []


def test_processes_of_one_login_on_one_gpu_are_one_intrusion() -> None:
    several = [
        process(pid=1),
        process(pid=2),
        process(pid=3, gpu_uuid=OTHER_GPU),
        process("carol", uid=1002, pid=4),
    ]
    found = find_intrusions(several, {GPU: ALICES}, rules=Rules(level=2))
    assert [(one.key, [p.pid for p in one.processes]) for one in found] == [
        ((GPU, "bob", 7), [1, 2]),
        ((OTHER_GPU, "bob", None), [3]),
        ((GPU, "carol", 7), [4]),
    ]


@pytest.mark.parametrize(
    "changed",
    [{"boot_id": "other"}, {"pid": 1}, {"start_ticks": 100}, {"uid": 1}],
    ids=["rebooted", "other pid", "reused pid", "other owner"],
)
def test_only_the_same_process_confirms(changed: dict[str, Any]) -> None:
    (intrusion,) = find_intrusions([process()], {GPU: ALICES}, rules=Rules(level=1))
    assert confirmed(intrusion, {process().identity})
    assert not confirmed(intrusion, {process(**changed).identity})


@pytest.mark.parametrize(
    "unknown",
    [
        {"uid": None},
        {"login": None},
        {"start_ticks": None},
        {"owner_confidence": "unknown"},
        {"gpu_uuid": None},
        {"gpu_uuid": "GPU-of-another-host"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_is_not_known_is_not_acted_upon(unknown: dict[str, Any]) -> None:
    assert processes_of(answer(row()), gpu_uuids={GPU})
    assert processes_of(answer(row(**unknown)), gpu_uuids={GPU}) == []


@pytest.mark.parametrize("section", ["processes", "owners"])
def test_an_incomplete_section_takes_nothing(section: str) -> None:
    data = answer(row())
    data["sections"][section] = {"state": "partial", "reason": "cut off"}
    assert processes_of(data, gpu_uuids={GPU}) == []


def test_an_answer_without_boot_id_takes_nothing() -> None:
    assert processes_of(answer(row(), boot_id=None), gpu_uuids={GPU}) == []


def test_only_gpus_described_without_fault_are_judged() -> None:
    data = {"gpus": [{"uuid": GPU, "state": "ok"}, {"uuid": OTHER_GPU, "state": "partial"}]}
    assert complete_gpus(data) == {GPU}


@given(
    st.lists(
        st.builds(
            process,
            login=st.sampled_from(["alice", "bob", "carol", "root"]),
            uid=st.sampled_from([0, 999, 1000, 1001]),
            gpu_uuid=st.sampled_from([GPU, OTHER_GPU]),
            pid=st.integers(2, 50),
        ),
        max_size=12,
    ),
    st.integers(0, 2),
)
def test_nobody_innocent_is_ever_found(processes: list[Process], level: int) -> None:
    rights = {GPU: ALICES}
    for intrusion in find_intrusions(processes, rights, rules=Rules(level=level)):
        assert level > 0
        for one in intrusion.processes:
            assert one in processes
            assert not (one.gpu_uuid == GPU and one.login == "alice")
            assert level == 2 or (one.gpu_uuid == GPU and one.uid >= 1000)


def test_the_warning_is_clean_whatever_people_are_called() -> None:
    text = warning_text(
        gpus="gpu01 GPU 0",
        intruder_processes=[
            (1, "a\x1b]52;c;evil\x07\nb\u202e"),
            *((n, "x" * 900) for n in range(9)),
        ],
        owner="al\x1bice\x9b",
        until="Tue 01 Dec 18:00 UTC",
        calendar_url="https://gpus.example.org/calendar/",
        consequence="The administrators can see this.",
    )
    assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert "and 5 more" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "reserved by al" in text
    assert "18:00 UTC" in text
