"""The answer of a simulated host to a round of the probe, in the very frame of probe.sh."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from tensorhive_site.demo.fleet import Activity, DemoHost, activity, uid_of

_TICKS = 100
_CORES = 64
_MEMORY_KIB = 528_000_000
# Every host has been up since then; start ticks are counted from it.
_BOOTED_AT = dt.datetime(2026, 1, 5, 6, tzinfo=dt.UTC)
_QUERY = (
    "index, uuid, pci.bus_id, name, driver_version, fan.speed [%], memory.total [MiB],"
    " memory.used [MiB], memory.free [MiB], utilization.gpu [%], utilization.memory [%],"
    " temperature.gpu, power.draw [W], power.limit [W], pstate"
)


def framed(host: DemoHost, nonce: str, moment: dt.datetime, options: Sequence[str] = ()) -> str:
    """The whole answer of one round: noise in front, sections, the last marker."""
    parts = [f"{host.name}: simulated host of a demo"]
    for name, text in _sections(host, nonce, moment, options):
        parts += [f"@@{nonce} begin {name}", text, "", f"@@{nonce} end {name} 0"]
    return "\n".join([*parts, f"@@{nonce} done", ""])


def _sections(
    host: DemoHost, nonce: str, moment: dt.datetime, options: Sequence[str]
) -> Iterator[tuple[str, str]]:
    shown = [index for index in range(host.gpus) if index != host.broken_gpu]
    doing = {index: activity(host, index, moment) for index in shown}
    busy = {index: one for index, one in doing.items() if one.login is not None}
    yield "clock", str(int(moment.timestamp()))
    yield (
        "disks",
        (
            "Filesystem 1024-blocks Used Available Capacity Mounted on\n"
            "/dev/nvme0n1p2 1843200000 921600000 921600000 50% /"
        ),
    )
    people = sorted({one.login for one in busy.values() if one.login})
    yield (
        "who",
        "\n".join(
            f"{login} pts/{number} {moment:%Y-%m-%d} 08:00 (192.0.2.{number + 10})"
            for number, login in enumerate(people)
        ),
    )
    yield "stat", _cpu(len(busy), moment)
    used = 40_000_000 + 30_000_000 * len(busy)
    yield "meminfo", f"MemTotal: {_MEMORY_KIB} kB\nMemAvailable: {_MEMORY_KIB - used} kB"
    load = 3.0 * len(busy)
    up = (moment - _BOOTED_AT).total_seconds()
    yield (
        "facts",
        (
            f"loadavg {load * 1.03:.2f} {load:.2f} {load * 0.97:.2f} 3/900 4242\n"
            f"uptime {up:.2f} 1.0\nboot_id 7d1c0000-0000-4000-8000-{host.uuid(0)[-12:]}\n"
            f"machine_id {host.uuid(0)[4:12]}\nclock_ticks {_TICKS}\nuid_min 1000"
        ),
    )
    if host.mig_card is not None:
        yield "list", _listing(host)
        yield "xml", _xml(host, doing)
    else:
        yield "gpus", _gpus(host, doing)
        yield (
            "processes",
            "\n".join(
                f"{host.uuid(index)}, {_pid(host, index)}, {one.memory_mib}, python"
                for index, one in busy.items()
            ),
        )
    yield "owners", "\n".join(_owner(host, index, one) for index, one in busy.items())
    yield "names", "\n".join(f"{uid_of(login)} {login}" for login in people)
    yield "commands", _commands(host, nonce, busy)


def _cpu(busy: int, moment: dt.datetime) -> str:
    """Counters that grow so that the share of work follows the number of busy GPUs."""
    ticks = int((moment - _BOOTED_AT).total_seconds() * _TICKS * _CORES)
    worked = int(ticks * (0.03 + 0.09 * busy))
    return f"cpu {worked} 0 0 {ticks - worked} 0 0 0 0 0 0\ncores {_CORES}"


def _gpus(host: DemoHost, doing: dict[int, Activity]) -> str:
    rows = [
        f"{index}, {host.uuid(index)}, {_bus(index)}, {host.model}, 570.124.06,"
        f" {min(95, 30 + int(one.utilization * 0.6))}, {host.memory_mib}, {one.memory_mib},"
        f" {host.memory_mib - one.memory_mib}, {one.utilization:.0f},"
        f" {one.utilization * 0.55:.0f}, {_temperature(one)}, {_power(host, one):.2f},"
        f" {host.power_limit}.00, P{0 if one.login else 8}"
        for index, one in doing.items()
    ]
    if host.broken_gpu is not None:
        rows.append(
            f"Unable to determine the device handle for GPU{host.broken_gpu}:"
            f" {_bus(host.broken_gpu)[4:]}: GPU is lost.  Reboot the system to recover this GPU"
        )
    return "\n".join([_QUERY, *rows])


def _listing(host: DemoHost) -> str:
    lines = []
    for index in range(host.gpus):
        lines.append(f"GPU {index}: {host.model} (UUID: {host.uuid(index)})")
        if index == host.mig_card:
            lines += [
                f"  MIG 3g.20gb     Device  {device}: (UUID: {host.instance_uuid(device)})"
                for device in range(2)
            ]
    return "\n".join(lines)


def _xml(host: DemoHost, doing: dict[int, Activity]) -> str:
    cards = "".join(_card(host, index, one) for index, one in doing.items())
    return f"<nvidia_smi_log><driver_version>570.124.06</driver_version>{cards}</nvidia_smi_log>"


def _card(host: DemoHost, index: int, one: Activity) -> str:
    is_cut = index == host.mig_card
    utilization = "N/A" if is_cut else f"{one.utilization:.0f} %"
    return (
        f'\n<gpu id="{_bus(index)}">\n<product_name>{host.model}</product_name>'
        f"<uuid>{host.uuid(index)}</uuid><fan_speed>N/A</fan_speed>"
        f"<performance_state>P{0 if one.login else 8}</performance_state>"
        f"<mig_mode><current_mig>{'Enabled' if is_cut else 'Disabled'}</current_mig></mig_mode>"
        f"{_instances(host) if is_cut else ''}{_memory(host.memory_mib, one.memory_mib)}"
        f"<utilization><gpu_util>{utilization}</gpu_util>"
        f"<memory_util>{utilization}</memory_util></utilization>"
        f"<temperature><gpu_temp>{_temperature(one)} C</gpu_temp></temperature>"
        f"<gpu_power_readings><power_draw>{_power(host, one):.2f} W</power_draw>"
        f"</gpu_power_readings>{_process_info(host, index, one, is_cut)}</gpu>"
    )


def _instances(host: DemoHost) -> str:
    size = host.memory_mib // 2 - 512
    devices = "".join(
        f"<mig_device><index>{device}</index><gpu_instance_id>{device + 1}</gpu_instance_id>"
        f"<compute_instance_id>0</compute_instance_id>{_memory(size, size // 3)}</mig_device>"
        for device in range(2)
    )
    return f"<mig_devices>{devices}</mig_devices>"


def _memory(total: int, used: int) -> str:
    return (
        f"<fb_memory_usage><total>{total} MiB</total><used>{used} MiB</used>"
        f"<free>{total - used} MiB</free></fb_memory_usage>"
    )


def _process_info(host: DemoHost, index: int, one: Activity, is_cut: bool) -> str:
    if one.login is None:
        return "<processes></processes>"
    return (
        "<processes><process_info>"
        f"<gpu_instance_id>{1 if is_cut else 'N/A'}</gpu_instance_id>\n"
        f"<pid>{_pid(host, index)}</pid>\n<type>C</type><process_name>python</process_name>"
        f"<used_memory>{one.memory_mib} MiB</used_memory></process_info></processes>"
    )


def _owner(host: DemoHost, index: int, one: Activity) -> str:
    pid, uid = _pid(host, index), uid_of(one.login or "")
    started = one.started_at or _BOOTED_AT
    ticks = int((started - _BOOTED_AT).total_seconds() * _TICKS)
    rest = " ".join(["0"] * 16)
    cgroup = f"0::/user.slice/user-{uid}.slice/session-{index}.scope"
    return f"{pid} {uid} {uid} {cgroup} {pid} (python) S 1 {pid} {rest} {ticks} 0"


def _commands(host: DemoHost, nonce: str, busy: dict[int, Activity]) -> str:
    pids = " ".join(str(_pid(host, index)) for index in busy)
    texts = "".join(f"\n@@{nonce} command\n{one.command}" for one in busy.values())
    return f" {pids}\n{texts}"


def _pid(host: DemoHost, index: int) -> int:
    return 10_000 + int(host.uuid(index)[-5:], 16) % 50_000


def _bus(index: int) -> str:
    return f"00000000:{0x10 + index:02X}:00.0"


def _temperature(one: Activity) -> int:
    return 31 + int(one.utilization * 0.48)


def _power(host: DemoHost, one: Activity) -> float:
    return host.power_limit * (0.12 + 0.0085 * one.utilization)
