"""The probe's answer as a whole: any bytes, recordings bent out of shape, and real hosts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring import nvidia_smi, probe, ssh
from monitoring.host_facts import cgroups, logins, procfs
from monitoring.probe import BrokenAnswer, read_snapshot
from monitoring.snapshot import SectionState, Snapshot
from tests.lab import Lab, LabHost

CORPUS = Path(__file__).resolve().parent.parent / "data" / "corpus"
RECORDINGS = [path.read_bytes() for path in sorted(CORPUS.glob("*.txt"))]
NONCE = "n0nce"


def framed(**sections: str | tuple[str, int]) -> bytes:
    """An answer of the probe with these sections, each with status 0 or its own."""
    lines = ["motd: welcome"]
    for name, given_section in sections.items():
        text, status = given_section if isinstance(given_section, tuple) else (given_section, 0)
        lines += [f"@@{NONCE} begin {name}", text, f"@@{NONCE} end {name} {status}"]
    return "\n".join([*lines, f"@@{NONCE} done", ""]).encode()


GPUS = """index, uuid, name, memory.used [MiB]
0, GPU-e49955df-b975-1fc3-9041-fb831fb4e24b, NVIDIA H20, 4
"""
OWNER = (
    "4242 1001 1001 0::/user.slice 4242 (a) R 1 (x) S 1 4242 " + " ".join(["0"] * 16) + " 9900 0"
)


def snapshot(answer: bytes) -> Snapshot:
    found = read_snapshot(answer, NONCE)
    assert isinstance(found, Snapshot), found
    return found


def test_a_process_is_joined_with_its_owner() -> None:
    found = snapshot(
        framed(
            gpus=GPUS,
            processes="GPU-e49955df-b975-1fc3-9041-fb831fb4e24b, 4242, 100, python",
            owners=OWNER,
            names="1001 bob",
            facts="uptime 1000.5 1\nclock_ticks 100\nboot_id b-1",
            commands=f" 4242\n\n@@{NONCE} command\npython train.py",
        )
    )
    (process,) = found.processes
    assert (process.uid, process.login, process.start_ticks) == (1001, "bob", 9900)
    assert (process.age_seconds, process.command) == (901, "python train.py")
    assert found.sections["owners"].state is SectionState.OK


def test_a_process_that_ended_in_between_keeps_its_owner_unknown() -> None:
    found = snapshot(
        framed(gpus=GPUS, processes="GPU-e49955df-b975-1fc3-9041-fb831fb4e24b, 7, 1, x", owners="")
    )
    (process,) = found.processes
    assert (process.uid, process.login) == (None, None)
    assert found.sections["owners"].state is SectionState.PARTIAL


def test_nobody_logged_in_is_not_the_same_as_nobody_can_tell() -> None:
    nobody = snapshot(framed(gpus=GPUS, who="", pts=""))
    assert (nobody.logins, nobody.logins_source) == ((), "who")
    silent = snapshot(framed(gpus=GPUS, who=("", 74), pts=("", 2)))
    assert (silent.logins, silent.logins_source) == ((), None)
    assert silent.sections["logins"].state is SectionState.UNAVAILABLE


def test_owners_of_terminals_are_found_without_any_records() -> None:
    found = snapshot(
        framed(
            pts="total 0\ncrw--w---- 1 1001 5 136, 3 Dec  1 03:44 3", names="1001 bob", gpus=GPUS
        )
    )
    assert [(one.login, one.terminal) for one in found.logins] == [("bob", "pts/3")]


@pytest.mark.parametrize(
    ("text", "status", "host_fault"),
    [
        ("", 127, "no_driver"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9,
         "no_driver"),
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "driver_mismatch"),
        ("No devices were found", 6, "no_gpus"),
        ("", 124, None),
    ],
    ids=["not installed", "no driver", "mismatch", "no GPUs", "hangs"],
)  # fmt: skip
def test_faults_of_the_whole_host(text: str, status: int, host_fault: str | None) -> None:
    found = snapshot(framed(gpus=(text, status), processes=(text, status)))
    assert found.host_fault == host_fault
    assert not found.sections["gpus"].is_complete
    assert not found.sections["processes"].is_complete
    assert found.gpus == ()


def test_an_answer_without_its_last_marker_is_not_used() -> None:
    whole = framed(gpus=GPUS)
    assert isinstance(read_snapshot(whole.replace(b" done", b" d"), NONCE), BrokenAnswer)
    assert isinstance(read_snapshot(whole, "another"), BrokenAnswer)


def test_only_the_first_frame_counts() -> None:
    twice = framed(gpus=GPUS) + framed(gpus=GPUS.replace("H20", "H21"))
    assert [gpu.name for gpu in snapshot(twice).gpus] == ["NVIDIA H20"]


def test_texts_that_leave_are_clean() -> None:
    found = snapshot(
        framed(
            gpus=GPUS,
            processes="GPU-e49955df-b975-1fc3-9041-fb831fb4e24b, 4242, 1, e\x1b[31mvil\u202e",
            owners=OWNER,
            commands=f" 4242\n\n@@{NONCE} command\nx\x1b]52;c;AAAA\x07\nsecond line",
        )
    )
    (process,) = found.processes
    shown = f"{process.name}{process.command}"
    assert not set("\x1b\x07\u202e\n") & set(shown)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_are_survived(data: bytes) -> None:
    assert isinstance(read_snapshot(data, NONCE), BrokenAnswer)
    read_snapshot(framed(gpus=data.decode("latin-1"), owners=data.decode("latin-1")), NONCE)


def _bent(seed: int) -> str:
    """A recording with pieces cut out, doubled, or replaced by another one's."""
    chance = random.Random(seed)
    data = bytearray(chance.choice(RECORDINGS))
    for _ in range(chance.randint(1, 6)):
        begin = chance.randint(0, len(data))
        end = min(len(data), begin + chance.randint(0, 40))
        other = chance.choice(RECORDINGS)
        piece = other[: chance.randint(0, 60)] if chance.random() < 0.5 else chance.randbytes(5)
        data[begin:end] = piece
    return data.decode(errors="replace")


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 10**9))
def test_bent_recordings_invent_nothing(seed: int) -> None:
    text = _bent(seed)
    found: list[Any] = [
        *nvidia_smi.parse_gpu_query(text).gpus,
        *nvidia_smi.parse_list(text).gpus,
        *nvidia_smi.parse_list(text).mig_devices,
        *nvidia_smi.parse_xml(text).gpus,
    ]
    for one in found:
        assert one.uuid is None or one.uuid in text
    processes = [
        *nvidia_smi.parse_compute_apps(text).processes,
        *nvidia_smi.parse_compute_apps(text, fields=None).processes,
        *(xml.process for xml in nvidia_smi.parse_xml(text).processes),
    ]
    for process in processes:
        assert str(process.pid) in text
        assert process.gpu_uuid is None or process.gpu_uuid in text
    for row in nvidia_smi.parse_pmon(text).rows:
        assert str(row.pid) in text
    people: list[Any] = [*logins.parse_who(text), *logins.parse_loginctl(text)]
    for person in people:
        assert person.user in text
    procfs.parse_ps(text)
    procfs.cpu_counters(text)
    procfs.parse_disks(text)
    procfs.parse_process_stat(text)
    cgroups.parse_cgroup(text)
    logins.parse_w(text)
    nvidia_smi.classify(text, seed % 256)


def test_a_document_that_declares_entities_is_not_opened() -> None:
    bomb = (
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
        "<nvidia_smi_log><gpu><product_name>&b;</product_name></gpu></nvidia_smi_log>"
    )
    assert nvidia_smi.parse_xml(bomb).gpus == ()


# -- Real hosts ---------------------------------------------------------------------------------


def ask(lab: Lab, host: LabHost, nonce: str = "r0und", **options: bool) -> Snapshot:
    """One round over SSH, by a shell of its own."""
    target = ssh.Target(
        ssh.Address(host.address, host.port, lab.observer),
        tuple(" ".join(line.split()[:2]) for line in host.public_keys),
        Path(lab.observing_key),
    )
    shell = ssh.Shell(target, preamble=probe.function_text())
    try:
        answer = shell.ask(
            probe.request_line(nonce, **options), end_marker=probe.end_marker(nonce), deadline=40
        )
    finally:
        shell.close()
    assert answer.ok, answer
    found = read_snapshot(answer.stdout, nonce)
    assert isinstance(found, Snapshot), found
    return found


@pytest.mark.lab
def test_a_real_host_tells_everything(lab: Lab) -> None:
    host = lab["gpu01"]
    process = host.start_process(user="bob", gpu=1, memory_mib=700, command="python train.py --x 1")
    terminal = host.open_terminal(user="bob")
    found = ask(lab, host)
    assert [gpu.uuid for gpu in found.gpus] == [host.gpu_uuid(i) for i in range(4)]
    (seen,) = found.processes
    assert (seen.pid, seen.login, seen.memory_used_mib) == (process.pid, "bob", 700)
    assert seen.command == "python train.py --x 1"
    assert seen.gpu_uuid == host.gpu_uuid(1)
    assert ("bob", terminal.terminal) in [(one.login, one.terminal) for one in found.logins]
    assert (found.boot_id, found.machine_id) == (host.boot_id, host.machine_id)
    assert {name for name, section in found.sections.items() if not section.is_complete} == set()
    assert found.clock_seconds is not None


@pytest.mark.lab
def test_nvidia_smi_starts_at_most_twice_a_round(lab: Lab) -> None:
    host = lab["gpu01"]
    host.start_process(user="bob", gpu=0)
    host.smi.forget_starts()
    ask(lab, host)
    assert len(host.smi.starts()) <= 2


@pytest.mark.lab
def test_a_name_with_newline_and_brackets_is_only_a_name(lab: Lab) -> None:
    host = lab["gpu01"]
    process = host.start_process(user="bob", gpu=0, command="evil\n) R 1 1 ( --x")
    (seen,) = ask(lab, host).processes
    assert (seen.pid, seen.login) == (process.pid, "bob")
    assert seen.command is not None
    assert "\n" not in seen.command


@pytest.mark.lab
def test_a_hanging_nvidia_smi_leaves_the_rest_readable(lab: Lab) -> None:
    host = lab["gpu01"]
    host.smi.hang()
    found = ask(lab, host)
    assert found.sections["gpus"].fault == "timeout"
    assert found.sections["processes"].state is SectionState.ERROR
    assert found.cpu is not None
    assert found.host_fault is None


@pytest.mark.lab
def test_leaving_the_gpus_out_starts_no_nvidia_smi(lab: Lab) -> None:
    host = lab["gpu01"]
    host.smi.forget_starts()
    found = ask(lab, host, skip_gpu=True)
    assert host.smi.starts() == []
    assert found.sections["gpus"].fault == "left-out"
    assert found.memory_total_mib is not None


@pytest.mark.lab
def test_garbage_and_a_missing_program_have_their_states(lab: Lab) -> None:
    first, second = lab["gpu01"], lab["gpu02"]
    first.smi.garbage()
    second.smi.uninstall()
    assert ask(lab, first).sections["gpus"].state is SectionState.ERROR
    gone = ask(lab, second)
    assert (gone.host_fault, gone.sections["gpus"].state) == (
        "no_driver",
        SectionState.UNAVAILABLE,
    )
