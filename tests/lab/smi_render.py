"""What nvidia-smi prints for given GPUs and processes, as the tables and texts it answers from."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Sequence

LAB_NAMESPACE = uuid.UUID("9b2d7f0e-6d0c-4d8e-9f5b-3d1f2c7a5e10")
DRIVER = "550.90.07"
CUDA = "12.4"


@dataclasses.dataclass
class Gpu:
    """One played GPU. `cells` overrides the answer to single fields, as {"fan.speed": "[N/A]"}."""

    index: int
    uuid: str
    bus_id: str
    name: str = "NVIDIA A100-SXM4-40GB"
    memory_total_mib: int = 40960
    memory_idle_mib: int = 4
    memory_used_mib: int | None = None
    """None: what the processes hold, plus memory_idle_mib."""
    utilization_percent: int | None = None
    """None: 90 while a process runs, else 0."""
    temperature_celsius: int = 35
    power_watts: float = 52.5
    cells: dict[str, str] = dataclasses.field(default_factory=dict)
    lost: str | None = None
    """A sentence that the driver says instead of this GPU's row."""


@dataclasses.dataclass
class App:
    """One process on one GPU, as the driver sees it. `keep`: shown although it has ended."""

    gpu: int
    pid: int
    name: str
    memory: str
    """MiB as digits, or a token such as "[N/A]"."""
    type: str = "C"
    keep: bool = False


def gpu_uuid(host: str, index: int) -> str:
    """The UUID of a host's GPU, the same in every lab."""
    return f"GPU-{uuid.uuid5(LAB_NAMESPACE, f'{host}/{index}')}"


def make_gpu(host: str, index: int) -> Gpu:
    return Gpu(index=index, uuid=gpu_uuid(host, index), bus_id=f"00000000:{index + 1:02X}:00.0")


def memory_used(gpu: Gpu, apps: Iterable[App]) -> int:
    """MiB."""
    if gpu.memory_used_mib is not None:
        return gpu.memory_used_mib
    held = (int(app.memory) for app in apps if app.gpu == gpu.index and app.memory.isdigit())
    return gpu.memory_idle_mib + sum(held)


def utilization(gpu: Gpu, apps: Iterable[App]) -> int:
    if gpu.utilization_percent is not None:
        return gpu.utilization_percent
    return 90 if any(app.gpu == gpu.index for app in apps) else 0


Value = Callable[[Gpu, Sequence[App], int], object]

RESERVED_MIB = 560

# field: (header if it differs, unit, value). The header gets the unit in brackets.
GPU_FIELDS: dict[str, tuple[str, str, Value]] = {
    "timestamp": ("", "", lambda g, a, n: ""),
    "driver_version": ("", "", lambda g, a, n: DRIVER),
    "count": ("", "", lambda g, a, n: n),
    "index": ("", "", lambda g, a, n: g.index),
    "name": ("", "", lambda g, a, n: g.name),
    "gpu_name": ("name", "", lambda g, a, n: g.name),
    "uuid": ("", "", lambda g, a, n: g.uuid),
    "gpu_uuid": ("uuid", "", lambda g, a, n: g.uuid),
    "serial": ("", "", lambda g, a, n: "[N/A]"),
    "gpu_serial": ("serial", "", lambda g, a, n: "[N/A]"),
    "pci.bus_id": ("", "", lambda g, a, n: g.bus_id),
    "gpu_bus_id": ("pci.bus_id", "", lambda g, a, n: g.bus_id),
    "pci.domain": ("", "", lambda g, a, n: "0x0000"),
    "pci.bus": ("", "", lambda g, a, n: f"0x{g.bus_id.split(':')[1]}"),
    "pci.device": ("", "", lambda g, a, n: "0x00"),
    "pcie.link.gen.current": ("", "", lambda g, a, n: 4),
    "pcie.link.gen.max": ("", "", lambda g, a, n: 4),
    "pcie.link.width.current": ("", "", lambda g, a, n: 16),
    "pcie.link.width.max": ("", "", lambda g, a, n: 16),
    "vbios_version": ("", "", lambda g, a, n: "92.00.45.00.03"),
    "compute_cap": ("", "", lambda g, a, n: "8.0"),
    "compute_mode": ("", "", lambda g, a, n: "Default"),
    "persistence_mode": ("", "", lambda g, a, n: "Enabled"),
    "display_active": ("", "", lambda g, a, n: "Disabled"),
    "display_mode": ("", "", lambda g, a, n: "Enabled"),
    "accounting.mode": ("", "", lambda g, a, n: "Disabled"),
    "mig.mode.current": ("", "", lambda g, a, n: "Disabled"),
    "mig.mode.pending": ("", "", lambda g, a, n: "Disabled"),
    "ecc.mode.current": ("", "", lambda g, a, n: "Enabled"),
    "ecc.errors.corrected.volatile.total": ("", "", lambda g, a, n: 0),
    "ecc.errors.uncorrected.volatile.total": ("", "", lambda g, a, n: 0),
    "ecc.errors.corrected.aggregate.total": ("", "", lambda g, a, n: 0),
    "ecc.errors.uncorrected.aggregate.total": ("", "", lambda g, a, n: 0),
    "retired_pages.pending": ("", "", lambda g, a, n: "[N/A]"),
    "pstate": ("", "", lambda g, a, n: "P0"),
    "clocks_throttle_reasons.active": (
        "clocks_event_reasons.active",
        "",
        lambda g, a, n: "0x0000000000000001",
    ),
    "clocks_event_reasons.active": ("", "", lambda g, a, n: "0x0000000000000001"),
    "fan.speed": ("", "%", lambda g, a, n: "[N/A]"),
    "memory.total": ("", "MiB", lambda g, a, n: g.memory_total_mib),
    "memory.reserved": ("", "MiB", lambda g, a, n: RESERVED_MIB),
    "memory.used": ("", "MiB", lambda g, a, n: memory_used(g, a)),
    "memory.free": (
        "",
        "MiB",
        lambda g, a, n: max(0, g.memory_total_mib - RESERVED_MIB - memory_used(g, a)),
    ),
    "utilization.gpu": ("", "%", lambda g, a, n: utilization(g, a)),
    "utilization.memory": ("", "%", lambda g, a, n: utilization(g, a) // 2),
    "utilization.encoder": ("", "%", lambda g, a, n: 0),
    "utilization.decoder": ("", "%", lambda g, a, n: 0),
    "encoder.stats.sessionCount": ("", "", lambda g, a, n: 0),
    "temperature.gpu": ("", "", lambda g, a, n: g.temperature_celsius),
    "temperature.memory": ("", "", lambda g, a, n: g.temperature_celsius + 3),
    "power.draw": ("", "W", lambda g, a, n: f"{g.power_watts:.2f}"),
    "power.limit": ("", "W", lambda g, a, n: "400.00"),
    "power.default_limit": ("", "W", lambda g, a, n: "400.00"),
    "power.max_limit": ("", "W", lambda g, a, n: "400.00"),
    "enforced.power.limit": ("", "W", lambda g, a, n: "400.00"),
    "power.management": ("", "", lambda g, a, n: "Enabled"),
    "clocks.gr": ("clocks.current.graphics", "MHz", lambda g, a, n: 1095),
    "clocks.sm": ("clocks.current.sm", "MHz", lambda g, a, n: 1095),
    "clocks.mem": ("clocks.current.memory", "MHz", lambda g, a, n: 1215),
    "clocks.current.graphics": ("", "MHz", lambda g, a, n: 1095),
    "clocks.current.sm": ("", "MHz", lambda g, a, n: 1095),
    "clocks.current.memory": ("", "MHz", lambda g, a, n: 1215),
    "clocks.max.graphics": ("", "MHz", lambda g, a, n: 1410),
    "clocks.max.sm": ("", "MHz", lambda g, a, n: 1410),
    "clocks.max.memory": ("", "MHz", lambda g, a, n: 1215),
}

APP_FIELDS = {
    "timestamp": "timestamp",
    "gpu_name": "gpu_name",
    "gpu_bus_id": "gpu_bus_id",
    "gpu_serial": "gpu_serial",
    "gpu_uuid": "gpu_uuid",
    "pid": "pid",
    "name": "process_name",
    "process_name": "process_name",
    "used_memory": "used_gpu_memory [MiB]",
    "used_gpu_memory": "used_gpu_memory [MiB]",
}
# Columns that only the program itself reads; "keep" ends the fields that may be asked for.
APP_COLUMNS = ["keep", "index", "type", "sm", "command"]


def _line(cells: Iterable[object]) -> str:
    return "\t".join(str(cell).replace("\t", "?").replace("\n", "?") for cell in cells) + "\n"


def _value(gpu: Gpu, field: str, apps: Sequence[App], count: int) -> object:
    return gpu.cells.get(field, GPU_FIELDS[field][2](gpu, apps, count))


def gpu_table(gpus: Sequence[Gpu], apps: Sequence[App]) -> str:
    headers = [
        (header or field) + (f" [{unit}]" if unit else "")
        for field, (header, unit, _) in GPU_FIELDS.items()
    ]
    lines = [_line(GPU_FIELDS), _line(headers), _line(unit for _, unit, _ in GPU_FIELDS.values())]
    for gpu in gpus:
        if gpu.lost is None:
            lines.append(_line(_value(gpu, field, apps, len(gpus)) for field in GPU_FIELDS))
        else:
            lines.insert(3, _line(["!", gpu.lost]))
    return "".join(lines)


def app_table(gpus: Sequence[Gpu], apps: Sequence[App]) -> str:
    names = [*APP_FIELDS, *APP_COLUMNS]
    units = ["MiB" if "[MiB]" in header else "" for header in APP_FIELDS.values()]
    lines = [_line(names), _line([*APP_FIELDS.values(), *APP_COLUMNS]), _line([*units, "", ""])]
    by_index = {gpu.index: gpu for gpu in gpus if gpu.lost is None}
    for app in apps:
        if gpu := by_index.get(app.gpu):
            lines.append(_line(_app_cells(app, gpu, apps)))
    return "".join(lines)


def _app_cells(app: App, gpu: Gpu, apps: Sequence[App]) -> list[object]:
    command = app.name.rsplit("/", 1)[-1]
    shown = [gpu.name, gpu.bus_id, "[N/A]", gpu.uuid, app.pid, app.name, app.name]
    own = [int(app.keep), gpu.index, app.type, utilization(gpu, apps), command]
    return ["", *shown, app.memory, app.memory, *own]


def gpu_list(gpus: Sequence[Gpu]) -> str:
    return "".join(
        f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n" if gpu.lost is None else f"{gpu.lost}\n"
        for gpu in gpus
    )


def field_help() -> str:
    fields = "\n".join(
        f'"{field}"\nOne of the fields that can be asked for.\n' for field in GPU_FIELDS
    )
    return f'List of valid properties to query for the switch "--query-gpu=":\n\n{fields}'
