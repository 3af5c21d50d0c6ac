"""What nvidia-smi prints for people (plain call) and as XML (-q -x)."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from tests.lab.smi_render import CUDA, DRIVER, RESERVED_MIB, App, Gpu, memory_used, utilization


def human_table(gpus: Sequence[Gpu], apps: Sequence[App]) -> str:
    """The panels of a plain `nvidia-smi`."""
    rule = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+\n"
    title = f"NVIDIA-SMI {DRIVER:<22} Driver Version: {DRIVER:<14} CUDA Version: {CUDA}"
    head = (
        f"+{'-' * 89}+\n| {title:<87} |\n{rule}"
        f"| {'GPU  Name                 Persistence-M':<39} | {'Bus-Id          Disp.A':<22} |"
        f" {'Volatile Uncorr. ECC':<20} |\n"
        f"| {'Fan  Temp   Perf          Pwr:Usage/Cap':<39} | {'Memory-Usage':>22} |"
        f" {'GPU-Util  Compute M.':<20} |\n"
        f"|{'':41}|{'':24}| {'MIG M.':>20} |\n"
        f"|{'=' * 41}+{'=' * 24}+{'=' * 22}|\n"
    )
    rows = [_human_rows(gpu, apps) + rule for gpu in gpus if gpu.lost is None]
    return head + "".join(rows) + "\n" + _human_processes(apps)


def _human_rows(gpu: Gpu, apps: Sequence[App]) -> str:
    memory = f"{memory_used(gpu, apps)}MiB / {gpu.memory_total_mib:>6}MiB"
    power = f"{gpu.power_watts:.0f}W / 400W"
    return (
        f"| {gpu.index:>3}  {gpu.name:<31.31} On | {gpu.bus_id:>18} Off | {'0':>20} |\n"
        f"| N/A {gpu.temperature_celsius:>4}C    P0 {power:>23} | {memory:>22} |"
        f" {utilization(gpu, apps):>7}%{'Default':>12} |\n"
        f"|{'':41}|{'':24}| {'Disabled':>20} |\n"
    )


def _human_processes(apps: Sequence[App]) -> str:
    rows = [
        f"{app.gpu:>4}   N/A  N/A {app.pid:>10} {app.type:>6}   {app.name:<36.36}"
        f"{app.memory:>12}MiB"
        for app in apps
    ]
    lines = [
        "Processes:",
        f" {'GPU   GI   CI        PID   Type   Process name':<74}{'GPU Memory':<12}",
        f" {'      ID   ID':<74}{'Usage':<12}",
        "",
        *(rows or [" No running processes found"]),
    ]
    text = "".join(f"| {line:<87} |\n" if line else f"|{'=' * 89}|\n" for line in lines)
    return f"+{'-' * 89}+\n{text}+{'-' * 89}+\n"


def xml(gpus: Sequence[Gpu], apps: Sequence[App]) -> str:
    """The document of `nvidia-smi -q -x`, with the elements of a 550 driver that people read."""
    inner = "".join(_xml_gpu(gpu, apps) for gpu in gpus if gpu.lost is None)
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
        f"<nvidia_smi_log>\n\t<driver_version>{DRIVER}</driver_version>\n"
        f"\t<cuda_version>{CUDA}</cuda_version>\n\t<attached_gpus>{len(gpus)}</attached_gpus>\n"
        f"{inner}</nvidia_smi_log>\n"
    )


def _xml_gpu(gpu: Gpu, apps: Sequence[App]) -> str:
    used = memory_used(gpu, apps)
    busy = utilization(gpu, apps)
    processes = "".join(
        f"\t\t\t<process_info>\n\t\t\t\t<gpu_instance_id>N/A</gpu_instance_id>\n"
        f"\t\t\t\t<compute_instance_id>N/A</compute_instance_id>\n\t\t\t\t<pid>{app.pid}</pid>\n"
        f"\t\t\t\t<type>{app.type}</type>\n"
        f"\t\t\t\t<process_name>{escape(app.name)}</process_name>\n"
        f"\t\t\t\t<used_memory>{app.memory} MiB</used_memory>\n\t\t\t</process_info>\n"
        for app in apps
        if app.gpu == gpu.index
    )
    return f"""\t<gpu id="{gpu.bus_id}">
\t\t<product_name>{escape(gpu.name)}</product_name>
\t\t<persistence_mode>Enabled</persistence_mode>
\t\t<mig_mode>
\t\t\t<current_mig>Disabled</current_mig>
\t\t\t<pending_mig>Disabled</pending_mig>
\t\t</mig_mode>
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t\t<uuid>{gpu.uuid}</uuid>
\t\t<minor_number>{gpu.index}</minor_number>
\t\t<pci>
\t\t\t<pci_bus_id>{gpu.bus_id}</pci_bus_id>
\t\t</pci>
\t\t<fan_speed>N/A</fan_speed>
\t\t<performance_state>P0</performance_state>
\t\t<fb_memory_usage>
\t\t\t<total>{gpu.memory_total_mib} MiB</total>
\t\t\t<reserved>{RESERVED_MIB} MiB</reserved>
\t\t\t<used>{used} MiB</used>
\t\t\t<free>{max(0, gpu.memory_total_mib - RESERVED_MIB - used)} MiB</free>
\t\t</fb_memory_usage>
\t\t<compute_mode>Default</compute_mode>
\t\t<utilization>
\t\t\t<gpu_util>{busy} %</gpu_util>
\t\t\t<memory_util>{busy // 2} %</memory_util>
\t\t</utilization>
\t\t<temperature>
\t\t\t<gpu_temp>{gpu.temperature_celsius} C</gpu_temp>
\t\t</temperature>
\t\t<gpu_power_readings>
\t\t\t<power_state>P0</power_state>
\t\t\t<power_draw>{gpu.power_watts:.2f} W</power_draw>
\t\t\t<current_power_limit>400.00 W</current_power_limit>
\t\t</gpu_power_readings>
\t\t<processes>
{processes}\t\t</processes>
\t</gpu>
"""
