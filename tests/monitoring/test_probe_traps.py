"""Answers that try to blame somebody else, or that are odd in a way that real hosts are."""

from __future__ import annotations

import time
from typing import Any

import pytest

from monitoring import nvidia_smi
from monitoring.host_facts import cgroups, logins, procfs
from monitoring.probe import MAX_BYTES, BrokenAnswer, read_snapshot
from monitoring.snapshot import SectionState, Snapshot
from tests.monitoring.test_probe import GPUS, NONCE, framed, snapshot

CARD = "GPU-e49955df-b975-1fc3-9041-fb831fb4e24b"
OTHER = "GPU-42e150e7-b625-e647-c5d1-e6e96ea0ab77"


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_a_name_cannot_add_a_row_for_somebody_elses_process(end: str) -> None:
    text = f"{CARD}, 77, 1, mine{end}{CARD}, 1234, 5, python\n"
    assert [one.pid for one in nvidia_smi.parse_compute_apps(text).processes] == [77]
    rows = f"# gpu pid type command\n 0 77 C mine{end} 0 1234 C python\n"
    assert [one.pid for one in nvidia_smi.parse_pmon(rows).rows] == [77]


@pytest.mark.parametrize("pid", ["-1", "0", "+5", "1.0", "12 MiB", "٣", "99999999999"])
def test_what_is_no_process_number_names_no_process(pid: str) -> None:
    assert nvidia_smi.parse_compute_apps(f"{CARD}, {pid}, 1, x").processes == ()
    row = f" 0 {pid.replace(' ', '')} C x\n"
    assert nvidia_smi.parse_pmon(f"# gpu pid type command\n{row}").rows == ()
    xml = f"<nvidia_smi_log><gpu><processes><process_info><pid>{pid}</pid></process_info>"
    assert nvidia_smi.parse_xml(f"{xml}</processes></gpu></nvidia_smi_log>".strip()).processes == ()


def test_a_card_that_lists_nothing_does_not_hide_its_neighbours() -> None:
    found = nvidia_smi.parse_compute_apps(
        f"{OTHER}, [Not Supported], [Not Supported], [Not Supported]\n{CARD}, 55, 5, python"
    )
    assert [one.pid for one in found.processes] == [55]
    assert (found.section.state, found.section.fault) == (SectionState.OK, "not-supported")


def test_a_missing_right_leaves_the_list_incomplete() -> None:
    hidden = "[Insufficient Permissions]"
    found = nvidia_smi.parse_compute_apps(
        f"{OTHER}, {hidden}, {hidden}, {hidden}\n{CARD}, 55, 5, python"
    )
    assert found.section.state is SectionState.PARTIAL
    alone = nvidia_smi.parse_compute_apps(f"{OTHER}, {hidden}, {hidden}, {hidden}")
    assert alone.section.state is SectionState.UNAVAILABLE


def owners(*pids: int) -> str:
    zeros = " ".join(["0"] * 17)
    return "\n".join(f"{pid} 1001 1001 0::/x {pid} (a) S 1 {zeros} 99 0" for pid in pids)


def test_a_command_line_with_a_marker_hides_nobody_elses() -> None:
    found = snapshot(
        framed(
            gpus=GPUS,
            processes=f"{CARD}, 5, 1, a\n{CARD}, 6, 1, b",
            owners=owners(5, 6),
            commands=(
                f" 5 6\n\n@@{NONCE} command\nevil\n@@x command\nmore"
                f"\n@@{NONCE} command\npython good.py"
            ),
        )
    )
    assert [one.command for one in found.processes] == ["evil @@x command more", "python good.py"]


def test_a_second_frame_is_used_for_nothing_and_told() -> None:
    once, twice = framed(gpus=GPUS), framed(gpus=GPUS) * 2
    assert "frame" not in snapshot(once).sections
    assert snapshot(twice).sections["frame"].fault == "second-frame"
    # What is left of another round is noise.
    late = once + framed(gpus=GPUS).replace(NONCE.encode(), b"0ther")
    assert "frame" not in snapshot(late).sections


def test_an_answer_beyond_the_limit_is_not_read() -> None:
    noise = b"x" * (MAX_BYTES + 1 - len(framed(gpus=GPUS)))
    assert isinstance(read_snapshot(noise + framed(gpus=GPUS), NONCE), BrokenAnswer)
    assert isinstance(read_snapshot(noise[1:] + framed(gpus=GPUS), NONCE), Snapshot)


def mig_xml(*, processes: str = "") -> str:
    """Two compute instances that share one GPU instance."""
    devices = "".join(
        f"<mig_device><index>{n}</index><gpu_instance_id>1</gpu_instance_id>"
        f"<compute_instance_id>{n}</compute_instance_id></mig_device>"
        for n in (0, 1)
    )
    return (
        "<nvidia_smi_log><driver_version>580.1</driver_version><gpu id='00000000:01:00.0'>"
        f"<product_name>NVIDIA H200</product_name><uuid>{CARD}</uuid>"
        f"<mig_devices>{devices}</mig_devices><processes>{processes}</processes>"
        "</gpu></nvidia_smi_log>"
    )


def mig_process(pid: int, compute_instance: Any) -> str:
    return (
        "<process_info><gpu_instance_id>1</gpu_instance_id>"
        f"<compute_instance_id>{compute_instance}</compute_instance_id>"
        f"<pid>{pid}</pid><type>C</type></process_info>"
    )


FIRST, SECOND = (
    "MIG-ac55b094-ccc0-8e4f-f14a-7f2cf01e2caa",
    "MIG-6cf9187e-4d08-0951-a26f-74c70d9f67b5",
)
LISTING = (
    f"GPU 0: NVIDIA H200 (UUID: {CARD})\n"
    f"  MIG 1c.3g.71gb  Device  0: (UUID: {FIRST})\n"
    f"  MIG 2c.3g.71gb  Device  1: (UUID: {SECOND})\n"
)


def test_a_process_stands_on_its_own_compute_instance() -> None:
    processes = mig_process(8, 0) + mig_process(9, 1) + mig_process(10, "N/A")
    found = snapshot(framed(xml=mig_xml(processes=processes), list=LISTING))
    assert [(one.pid, one.gpu_uuid) for one in found.processes] == [
        (8, FIRST),
        (9, SECOND),
        (10, CARD),  # which one is not known: the card, never a guess
    ]
    assert [(gpu.uuid, gpu.parent_uuid) for gpu in found.gpus] == [
        (CARD, None),
        (FIRST, CARD),
        (SECOND, CARD),
    ]
    assert {gpu.driver_version for gpu in found.gpus} == {"580.1"}
    assert found.sections["gpus"].state is SectionState.OK


def test_instances_without_a_name_are_told() -> None:
    found = snapshot(framed(xml=mig_xml(processes=mig_process(8, 0))))
    assert [gpu.uuid for gpu in found.gpus] == [CARD]
    assert found.sections["processes"].fault == "mig-unnamed"


def test_broken_xml_does_not_take_the_rows_of_the_cards_away() -> None:
    found = snapshot(framed(gpus=GPUS, xml="<nvidia_smi_log><gpu>", list=LISTING))
    assert [gpu.uuid for gpu in found.gpus] == [CARD]
    assert found.sections["gpus"].state is SectionState.OK
    assert found.sections["processes"].state is SectionState.ERROR


def test_xml_names_the_lost_card_beside_the_good_one() -> None:
    sentence = "Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error\n"
    found = snapshot(framed(xml=sentence + mig_xml(), list=LISTING))
    assert [(one.index, one.bus_id) for one in found.lost_gpus] == [(3, "0000:04:00.0")]
    assert (found.sections["gpus"].state, found.sections["gpus"].fault) == (
        SectionState.PARTIAL,
        "gpu-lost",
    )


@pytest.mark.parametrize(
    "row",
    [
        "     3 1000 anna seat0 tty2",
        "     3 1000 anna             tty2",
        "     3 1000 anna seat0 tty2  active no  -",
        "     3 1000 anna -     tty2  active yes 2h 5min ago",
        "     3 1000 anna seat0 60565 user-early tty2 yes 2h 33min ago",
    ],
)
def test_every_version_of_loginctl_tells_the_terminal(row: str) -> None:
    (found,) = logins.parse_loginctl(row)
    assert (found.user, found.uid, found.tty, found.is_person) == ("anna", 1000, "tty2", True)


def test_managers_and_greeters_are_no_people_without_a_legend_either() -> None:
    rows = "1 132 gdm - 1038 manager-early - no -\nc1 132 gdm seat0 1011 greeter tty7 no -"
    assert [row.is_person for row in logins.parse_loginctl(rows)] == [False, False]


def test_a_login_that_would_have_to_be_mended_is_unknown() -> None:
    assert procfs.parse_names("1001 bo\u202eb\n1002 eve") == {1002: "eve"}


def test_kubernetes_without_a_runtime_in_the_path_has_its_container() -> None:
    found = cgroups.parse_cgroup(f"0::/kubepods/besteffort/pod1/{'ab' * 32}")
    assert (found.runtime, found.container_id) == ("containerd", "ab" * 32)


FULL = {"gpus": GPUS, "processes": f"{CARD}, 5, 1, a\n" * 18_000}
BAITS = {
    "cgroups": {"gpus": GPUS, "owners": owners(*range(1, 48)).replace("/x", "kubepods" * 2_000)},
    "markers": {"gpus": f"@@{NONCE} begin gpus\n" * 30_000},
    "deep": {"xml": "<nvidia_smi_log>" + "<a>" * 90_000 + "</a>" * 90_000 + "</nvidia_smi_log>"},
}


@pytest.mark.parametrize("bait", BAITS)
def test_no_bait_takes_much_longer_to_read_than_honest_rows(bait: str) -> None:
    assert seconds(framed(**BAITS[bait])) < 3 * seconds(framed(**FULL)) + 0.2


def seconds(answer: bytes) -> float:
    """The best of three: on a busy machine any one may take long."""
    assert len(answer) <= MAX_BYTES
    return min(_once(answer) for _ in range(3))


def _once(answer: bytes) -> float:
    began = time.process_time()
    read_snapshot(answer, NONCE)
    return time.process_time() - began
