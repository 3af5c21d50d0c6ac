"""The played nvidia-smi answers as the real one would."""

import os
import subprocess
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.lab.smi import App, NvidiaSmi


@pytest.fixture
def smi(tmp_path: Path) -> NvidiaSmi:
    return NvidiaSmi(host="gpu01", directory=tmp_path, gpus=2)


def ask(smi: NvidiaSmi, *arguments: str, seconds: float = 10) -> tuple[int, str]:
    done = subprocess.run(
        [smi.program, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )
    return done.returncode, done.stdout


def me(gpu: int = 0, memory: str = "1000", name: str = "python") -> App:
    return App(gpu, os.getpid(), name, memory)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "csv",
            "index, memory.used [MiB], power.draw [W], fan.speed [%]\n0, 4 MiB, 52.50 W, [N/A]",
        ),
        (
            "csv,nounits",
            "index, memory.used [MiB], power.draw [W], fan.speed [%]\n0, 4, 52.50, [N/A]",
        ),
        ("csv,noheader", "0, 4 MiB, 52.50 W, [N/A]"),
        ("csv,noheader,nounits", "0, 4, 52.50, [N/A]"),
    ],
)
def test_query_answers_fields_in_the_order_asked(
    smi: NvidiaSmi, options: str, expected: str
) -> None:
    query = "--query-gpu=index,memory.used,power.draw,fan.speed"
    assert ask(smi, query, f"--format={options}", "-i", "0") == (0, expected + "\n")


def test_uuids_are_stable_and_differ_by_host_and_index(tmp_path: Path, smi: NvidiaSmi) -> None:
    (tmp_path / "b").mkdir()
    other = NvidiaSmi(host="gpu02", directory=tmp_path / "b", gpus=2)
    uuids = [gpu.uuid for gpu in [*smi.gpus, *other.gpus]]
    assert uuids[0] == "GPU-1fc77c4c-4db6-5215-8115-6e18b9440f3c"
    assert len(set(uuids)) == 4


def test_unknown_field_refuses_the_query(smi: NvidiaSmi) -> None:
    sentence = 'Field "device_minor" is not a valid field to query.\n\n'
    assert ask(smi, "--query-gpu=index,device_minor,foo", "--format=csv") == (2, sentence)
    assert ask(smi, "--query-compute-apps=pid,device_minor", "--format=csv") == (2, sentence)


def test_old_names_are_answered_under_new_headers(smi: NvidiaSmi) -> None:
    _, out = ask(smi, "--query-gpu=gpu_uuid,clocks_throttle_reasons.active", "--format=csv")
    assert out.splitlines()[0] == "uuid, clocks_event_reasons.active"


def test_gpus_are_chosen_by_index_uuid_and_bus_id(smi: NvidiaSmi) -> None:
    second = smi.gpus[1]
    for chosen in ("1", second.uuid, second.bus_id):
        answer = ask(smi, "--query-gpu=index", "--format=csv,noheader", f"--id={chosen}")
        assert answer == (0, "1\n")
    assert ask(smi, "-i", "7", "--query-gpu=index", "--format=csv,noheader") == (
        6,
        "No devices were found\n",
    )


def test_memory_and_utilization_follow_the_processes(smi: NvidiaSmi) -> None:
    query = ("--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits")
    smi.add_app(me())
    assert ask(smi, *query) == (0, "1004, 90\n4, 0\n")
    smi.set_gpu(1, utilization_percent=3, memory_used_mib=77)
    assert ask(smi, *query) == (0, "1004, 90\n77, 3\n")
    smi.set_gpu(0, cells={"utilization.gpu": "[Unknown Error]"})
    assert ask(smi, *query) == (0, "1004, [Unknown Error]\n77, 3\n")


def test_compute_apps_are_shown_while_they_live(smi: NvidiaSmi) -> None:
    with subprocess.Popen(["sleep", "60"]) as ended:
        ended.kill()
    smi.add_app(me(name="/opt/a b, c"))
    smi.add_app(App(0, ended.pid, "gone", "5"))
    smi.add_app(App(1, ended.pid, "[Not Found]", "[N/A]", keep=True))
    smi.add_app(App(1, os.getpid(), "desktop", "9", type="G"))
    query = "--query-compute-apps=gpu_uuid,pid,used_memory,process_name"
    first, second = (gpu.uuid for gpu in smi.gpus)
    assert ask(smi, query, "--format=csv,nounits")[1].splitlines() == [
        "gpu_uuid, pid, used_gpu_memory [MiB], process_name",
        f"{first}, {os.getpid()}, 1000, /opt/a b, c",
        f"{second}, {ended.pid}, [N/A], [Not Found]",
    ]


def test_pmon_has_a_row_for_each_process_and_each_idle_gpu(smi: NvidiaSmi) -> None:
    smi.add_app(me(name="/usr/bin/a-name-longer-than-that"))
    status, out = ask(smi, "pmon", "-c", "1", "-s", "um")
    lines = out.splitlines()
    assert status == 0
    assert [line.split()[:3] for line in lines[:2]] == [["#", "gpu", "pid"], ["#", "Idx", "#"]]
    assert lines[2].split() == [
        "0",
        str(os.getpid()),
        "C",
        "90",
        *"-----",
        "1000",
        "0",
        *["a-name-longer-t"],
    ]
    assert lines[3].split() == ["1", *"-----------"]
    assert len({len(line.rstrip()) for line in lines[:2]}) == 2
    only = ask(smi, "pmon", "-c", "1", "--id", "1")[1].splitlines()
    assert [line.split()[0] for line in only] == ["#", "#", "1"]


def test_list_xml_help_and_table(smi: NvidiaSmi) -> None:
    smi.add_app(me(name="<train> & co"))
    assert ask(smi, "-L")[1].splitlines()[1] == (
        f"GPU 1: NVIDIA A100-SXM4-40GB (UUID: {smi.gpus[1].uuid})"
    )
    document = ET.fromstring(ask(smi, "-q", "-x")[1])  # noqa: S314
    assert [gpu.findtext("uuid") for gpu in document.iter("gpu")] == [g.uuid for g in smi.gpus]
    assert document.findtext("gpu/processes/process_info/process_name") == "<train> & co"
    assert '"memory.used"' in ask(smi, "--help-query-gpu")[1]
    table = ask(smi)[1]
    assert len({len(line) for line in table.splitlines() if line}) == 1
    assert str(os.getpid()) in table


def test_wrong_arguments_are_refused(smi: NvidiaSmi) -> None:
    assert ask(smi, "--bogus")[0] == 1
    assert ask(smi, "--query-gpu=index")[0] == 1


def test_starts_are_counted_with_their_arguments(smi: NvidiaSmi) -> None:
    ask(smi, "-L")
    ask(smi, "pmon", "-c", "1")
    assert smi.starts() == ["-L", "pmon -c 1"]
    smi.forget_starts()
    assert smi.starts() == []


def test_state_file_written_by_others_is_taken_up(smi: NvidiaSmi) -> None:
    smi.state_path.write_text(smi.state_path.read_text().replace("A100", "B200"))
    smi.load()
    assert "B200" in ask(smi, "-L")[1]


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("no_driver", 9, "couldn't communicate with the NVIDIA driver"),
        ("driver_mismatch", 18, "Driver/library version mismatch"),
        ("no_devices", 6, "No devices were found"),
        ("library_missing", 12, "couldn't find libnvidia-ml.so"),
    ],
)
def test_drivers_trouble_is_told_in_their_words(
    smi: NvidiaSmi, fault: str, status: int, words: str
) -> None:
    getattr(smi, fault)()
    for arguments in (["-L"], ["--query-gpu=index", "--format=csv"], ["pmon", "-c", "1"], []):
        told, out = ask(smi, *arguments)
        assert told == status
        assert words in out
    smi.heal()
    assert ask(smi, "-L")[0] == 0


def test_lost_gpu_is_a_sentence_among_rows_or_all_there_is(smi: NvidiaSmi) -> None:
    query = ("--query-gpu=index", "--format=csv,noheader")
    smi.lose_gpu(1)
    sentence = "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error"
    assert ask(smi, *query) == (0, f"{sentence}\n0\n")
    smi.lose_gpu(1, whole_answer=True)
    status, out = ask(smi, *query)
    assert status == 15
    assert out.startswith("Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost")


def test_fault_can_concern_one_kind_of_call(smi: NvidiaSmi) -> None:
    smi.say("broken\n", status=3, only="pmon")
    assert ask(smi, "pmon", "-c", "1") == (3, "broken\n")
    assert ask(smi, "-L")[0] == 0
    with pytest.raises(ValueError, match="is not one of"):
        smi.hang(only="pnom")


def test_delay_comes_before_the_answer(smi: NvidiaSmi) -> None:
    smi.delay(0.4)
    began = time.monotonic()
    assert ask(smi, "-L")[0] == 0
    assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize("ignore_term", [False, True])
def test_hang_lasts_until_term_or_only_kill(smi: NvidiaSmi, ignore_term: bool) -> None:
    smi.hang(ignore_term=ignore_term)
    with subprocess.Popen([smi.program, "-L"], stdout=subprocess.PIPE) as hanging:
        with pytest.raises(subprocess.TimeoutExpired):
            hanging.wait(0.5)
        hanging.terminate()
        if ignore_term:
            with pytest.raises(subprocess.TimeoutExpired):
                hanging.wait(0.5)
            hanging.kill()
        hanging.wait(5)


def test_garbage_flood_and_drip(smi: NvidiaSmi) -> None:
    smi.garbage()
    status, out = ask(smi, "-L")
    assert (status, "\ufffd" in out) == (0, True)
    smi.flood("x" * 99)
    with subprocess.Popen([smi.program, "-L"], stdout=subprocess.PIPE) as flooding:
        assert flooding.stdout is not None
        assert len(flooding.stdout.read(3_000_000)) == 3_000_000
        flooding.kill()
    smi.heal()
    usual = ask(smi, "-L")
    smi.drip(0.001)
    assert ask(smi, "-L") == usual


def test_uninstalled_program_is_not_there(smi: NvidiaSmi) -> None:
    smi.uninstall()
    with pytest.raises(FileNotFoundError):
        ask(smi, "-L")
    smi.install()
    assert ask(smi, "-L")[0] == 0
