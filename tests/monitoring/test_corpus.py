"""Recorded output of real programs, each case with the values it must come out with."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitoring import nvidia_smi
from monitoring.host_facts import cgroups, logins, procfs
from monitoring.nvidia_smi.faults import lost_gpus

CORPUS = Path(__file__).resolve().parent.parent / "data" / "corpus"
CASES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(CORPUS.glob("*.yaml"))}

# The corpus's names -> ours.
GPU = {
    "index": "index",
    "uuid": "uuid",
    "name": "name",
    "pci_bus_id": "bus_id",
    "fan_pct": "fan_percent",
    "mem_total_mib": "memory_total_mib",
    "mem_used_mib": "memory_used_mib",
    "mem_free_mib": "memory_free_mib",
    "mem_reserved_mib": "memory_reserved_mib",
    "util_pct": "utilization_percent",
    "mem_util_pct": "memory_utilization_percent",
    "temp_c": "temperature_celsius",
    "power_w": "power_watts",
    "power_limit_w": "power_limit_watts",
    "pstate": "performance_state",
    "mig_mode": "mig_mode",
}
PROCESS = {"gpu_uuid": "gpu_uuid", "pid": "pid", "name": "name", "mem_mib": "memory_used_mib",
           "type": "kind"}  # fmt: skip
PMON = {
    "gpu_index": "gpu_index",
    "pid": "pid",
    "type": "kind",
    "name": "name",
    "sm_pct": "sm_percent",
    "mem_util_pct": "memory_utilization_percent",
    "mem_mib": "memory_used_mib",
}
MIG = {"device": "device", "profile": "profile", "gpu_index": "gpu_index", "uuid": "uuid",
       "gi": "gpu_instance", "mem_total_mib": "memory_total_mib",
       "mem_used_mib": "memory_used_mib", "mem_free_mib": "memory_free_mib"}  # fmt: skip
LOGINCTL = {"session": "session", "uid": "uid", "user": "user", "seat": "seat", "klass": "klass",
            "tty": "tty", "idle": "idle", "idle_since": "idle_since"}  # fmt: skip
WHO = {"user": "user", "line": "line", "since": "since", "host": "host", "via": "via"}
# Remarks for the reader, nothing to compare.
REMARKS = {"note", "names_truncated"}


def text_of(name: str) -> str:
    """What came on both streams, as the probe merges them."""
    case = CASES[name]
    return (CORPUS / f"{name}.txt").read_text() + (case.get("stderr") or "")


def asked_fields(command: str, option: str) -> list[str] | None:
    """The fields in a command that was asked without a header."""
    if "noheader" not in command:
        return None
    found = re.search(rf"--{option}=(\S+)", command)
    assert found, command
    return found[1].split(",")


def same(expected: Any, got: Any) -> bool:
    return bool(got == pytest.approx(expected) if isinstance(expected, float) else got == expected)


def compare(expected: dict[str, Any], got: Any, names: dict[str, str]) -> None:
    for key, value in expected.items():
        assert same(value, getattr(got, names[key])), (key, value, got)


def compare_gpus(expected: list[dict[str, Any]], gpus: Any) -> None:
    assert len(gpus) == len(expected)
    for wanted, reading in zip(expected, gpus, strict=True):
        wanted = dict(wanted)
        absent = wanted.pop("absent", {})
        for key, reason in absent.items():
            assert reading.absent[GPU.get(key, key)] == reason
        for key, value in wanted.items():
            got = getattr(reading, GPU[key]) if key in GPU else reading.extra[key]
            assert same(value, got), (key, value, got)


def compare_lost(expected: list[dict[str, Any]], lost: Any) -> None:
    assert [(one.index, one.bus_id, one.reason) for one in lost] == [
        (one["index"], one["pci_bus_id"], one["reason"]) for one in expected
    ]


def compare_fault(expect: dict[str, Any], section: Any, fault: Any) -> None:
    state = {"ok": "ok", "partial": "partial", "error": ("error", "unavailable")}[expect["status"]]
    assert section.state in state
    assert (fault.kind if fault else None) == expect.get("error_kind")
    if fault:
        assert fault.sentence.endswith(".")


def check_gpu_query(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    fields = asked_fields(case["command"], "query-gpu")
    answer = nvidia_smi.parse_gpu_query(text_of(name), case["exit_code"], fields=fields)
    compare_fault(expect, answer.section, answer.fault)
    compare_gpus(expect.get("gpus", []), answer.gpus)
    compare_lost(expect.get("lost", []), answer.lost)
    assert answer.dropped_rows == expect.get("dropped_rows", 0)
    return {"gpus", "lost", "dropped_rows"}


def check_apps(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    fields = asked_fields(case["command"], "query-compute-apps")
    answer = nvidia_smi.parse_compute_apps(text_of(name), case["exit_code"], fields=fields)
    if expect.get("process_listing") == "unsupported":
        assert not answer.is_listing_supported
        assert answer.processes == ()
        assert expect["gpu_uuid"] in text_of(name)
        return {"process_listing", "gpu_uuid"}
    compare_fault(expect, answer.section, answer.fault)
    assert len(answer.processes) == len(expect["processes"])
    for wanted, process, absent in zip(
        expect["processes"], answer.processes, answer.absent, strict=True
    ):
        wanted = dict(wanted)
        reasons = {PROCESS[key]: reason for key, reason in wanted.pop("absent", {}).items()}
        assert absent == reasons
        compare(wanted, process, PROCESS)
    return {"processes"}


def check_pmon(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    answer = nvidia_smi.parse_pmon(text_of(name), case["exit_code"])
    compare_fault(expect, answer.section, answer.fault)
    wanted = expect.get("processes", [])
    assert len(answer.rows) == len(wanted)
    for row, one in zip(answer.rows, wanted, strict=True):
        compare(one, row, PMON)
    return {"processes"}


def check_error(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    text = text_of(name)
    fault = nvidia_smi.classify(text, case["exit_code"])
    assert fault is not None
    assert fault.kind == expect["error_kind"]
    assert fault.sentence.endswith(".")
    assert fault.detail == expect.get("field", expect.get("nvml_version"))
    compare_lost(expect.get("lost", []), lost_gpus(text.splitlines()))
    # Whatever was asked for, nothing is made of it.
    query = nvidia_smi.parse_gpu_query(text, case["exit_code"])
    assert query.gpus == ()
    assert query.fault == fault
    return {"field", "nvml_version", "lost"}


def check_list(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    answer = nvidia_smi.parse_list(text_of(name), case["exit_code"])
    compare_fault(expect, answer.section, answer.fault)
    compare_gpus(expect["gpus"], answer.gpus)
    wanted = expect.get("mig_devices", [])
    assert len(answer.mig_devices) == len(wanted)
    for device, one in zip(answer.mig_devices, wanted, strict=True):
        compare(one, device, MIG)
    return {"gpus", "mig_devices"}


def check_xml(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    answer = nvidia_smi.parse_xml(text_of(name), case["exit_code"])
    compare_fault(expect, answer.section, answer.fault)
    compare_gpus(expect.get("gpus", []), answer.gpus)
    processes = expect.get("processes", [])
    assert len(answer.processes) == len(processes)
    for got, one in zip(answer.processes, processes, strict=True):
        compare(one, got.process, PROCESS)
    wanted = expect.get("mig_devices", [])
    assert len(answer.mig_devices) == len(wanted)
    for device, one in zip(answer.mig_devices, wanted, strict=True):
        compare(one, device, MIG)
    return {"gpus", "processes", "mig_devices"}


def check_ps(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    rows = procfs.parse_ps(text_of(name))
    assert [(row.pid, row.user, row.is_user_cut) for row in rows] == [
        (one["pid"], one["user"], one["user_cut"]) for one in expect["processes"]
    ]
    # A process that ended leaves no row: its owner is not known.
    assert expect.get("owner", "absent") in (None, "absent")
    return {"processes", "owner"}


def check_who(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    rows = logins.parse_who(text_of(name))
    assert len(rows) == len(expect["sessions"])
    for row, one in zip(rows, expect["sessions"], strict=True):
        compare(one, row, WHO)
    if expect.get("reliable") is False:
        # The probe reports who's missing records by a status; then it is no source at all.
        assert logins.merge(loginctl=None, who=None, pts=None, names={}) == ((), None)
    return {"sessions", "reliable"}


def check_w(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    answer = logins.parse_w(text_of(name))
    assert list(answer.load) == expect["load"]
    assert answer.users == expect["users"]
    assert [(row.user, row.line, row.host) for row in answer.rows] == [
        (one["user"], one["line"], one["host"]) for one in expect["sessions"]
    ]
    return {"sessions", "load", "users"}


def check_loginctl(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    text = (CORPUS / f"{name}.txt").read_text()
    if expect["status"] == "error":
        # The status says it: then it is no source, not an empty one.
        assert case["exit_code"] != 0
        assert logins.parse_loginctl(text_of(name)) == []
        return {"error_kind"}
    rows = logins.parse_loginctl(text)
    assert len(rows) == len(expect["sessions"])
    for row, one in zip(rows, expect["sessions"], strict=True):
        compare(one, row, LOGINCTL)
    if "people" in expect:
        assert sorted({row.user for row in rows if row.is_person}) == expect["people"]
    return {"sessions", "people"}


def check_proc_stat(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    counters, cores, boot_time = procfs.parse_cpu(text_of(name))
    assert counters == expect["cpu_total"]
    assert cores == expect["cores"]
    assert boot_time == expect["btime"]
    summed = procfs.cpu_counters(text_of(name))
    assert summed is not None
    assert summed.idle == counters["idle"] + counters["iowait"]
    return {"cpu_total", "cores", "btime"}


def check_pid_stat(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    stat = procfs.parse_process_stat(text_of(name))
    assert stat is not None
    (wanted,) = expect["processes"]
    assert (stat.pid, stat.name, stat.state, stat.parent) == (
        wanted["pid"],
        wanted["name"],
        wanted["state"],
        wanted["ppid"],
    )
    return {"processes"}


def check_meminfo(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    values = procfs.parse_meminfo(text_of(name))
    names = {"mem_total_kib": "MemTotal", "mem_free_kib": "MemFree",
             "mem_available_kib": "MemAvailable"}  # fmt: skip
    for key, ours in names.items():
        assert values[ours] == expect[key]
    assert procfs.memory_mib(text_of(name)) == (
        expect["mem_total_kib"] // 1024,
        (expect["mem_total_kib"] - expect["mem_available_kib"]) // 1024,
    )
    return set(names)


def check_cgroup(name: str, expect: dict[str, Any], case: dict[str, Any]) -> set[str]:
    found = cgroups.parse_cgroup(text_of(name))
    container = expect["container"] or {}
    assert (found.container_id, found.runtime, found.pod) == (
        container.get("id"),
        container.get("runtime"),
        container.get("pod"),
    )
    assert found.uid == expect.get("uid")
    return {"container", "uid"}


CHECKS: dict[str, Callable[[str, dict[str, Any], dict[str, Any]], set[str]]] = {
    "gpuquery": check_gpu_query,
    "noise": check_gpu_query,
    "computeapps": check_apps,
    "pmon": check_pmon,
    "err": check_error,
    "hang": check_error,
    "ssh": check_error,
    "list": check_list,
    "xml": check_xml,
    "ps": check_ps,
    "who": check_who,
    "w": check_w,
    "loginctl": check_loginctl,
    "procstat": check_proc_stat,
    "procpidstat": check_pid_stat,
    "meminfo": check_meminfo,
    "cgroup": check_cgroup,
}


@pytest.mark.parametrize("name", CASES)
def test_recorded_output_is_read_as_expected(name: str) -> None:
    case = CASES[name]
    expect = case["expect"]
    looked_at = CHECKS[name.split("-")[0]](name, expect, case)
    unmapped = set(expect) - looked_at - REMARKS - {"status", "error_kind"}
    assert unmapped == set(), "the case expects something that nobody compares"


def test_every_case_has_its_text() -> None:
    assert {path.stem for path in CORPUS.glob("*.txt")} == set(CASES)
    assert len(CASES) > 80
