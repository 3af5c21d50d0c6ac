"""The played nvidia-smi of a lab host: its state, and the ways in which it can misbehave."""

import dataclasses
import json
import shlex
import shutil
import threading
from pathlib import Path

from tests.lab import smi_panels, smi_render
from tests.lab.files import write_atomically
from tests.lab.smi_render import DRIVER, App, Gpu

HERE = Path(__file__).parent
KINDS = ("query-gpu", "query-compute-apps", "pmon", "list", "xml", "help", "table", "invalid")

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)
MISMATCH = (
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n"
)


class NvidiaSmi:
    """What a host's nvidia-smi answers.

    The state is kept in state.json and rendered into plain files, each replaced in one step, from
    which the program answers; `load` takes up a state.json that somebody else changed. The ways to
    misbehave apply to every kind of call (KINDS), or with `only` to one, and last until `heal`.
    """

    def __init__(self, *, host: str, directory: Path, gpus: int) -> None:
        self.host = host
        self.directory = directory / "smi"
        self.program = directory / "bin" / "nvidia-smi"
        self._count = gpus
        self._lock = threading.RLock()
        self._install()
        self.reset()

    def _install(self) -> None:
        self.directory.mkdir()
        self.program.parent.mkdir()
        for script in ("nvidia_smi.sh", "csv.awk", "pmon.awk"):
            shutil.copyfile(HERE / script, self.directory / script)
        (self.directory / "nvidia_smi.sh").chmod(0o755)
        self._starts = self.directory / "starts"
        self._starts.touch()
        # Every account of the host appends to it.
        self._starts.chmod(0o666)

    # State

    def reset(self) -> None:
        """As at the start: idle GPUs, no process, no fault, no start counted."""
        with self._lock:
            self.gpus = [smi_render.make_gpu(self.host, index) for index in range(self._count)]
            self.apps: list[App] = []
            self.install()
            self.heal()
            self.forget_starts()
            self.save()

    def save(self) -> None:
        """Write the state, after changes to `gpus` or `apps`; the next answer follows it."""
        with self._lock:
            state = {
                "gpus": [dataclasses.asdict(gpu) for gpu in self.gpus],
                "apps": [dataclasses.asdict(app) for app in self.apps],
            }
            self._write("state.json", json.dumps(state, indent=2) + "\n")
            self._render()

    def load(self) -> None:
        """Take up state.json as it is now."""
        with self._lock:
            state = json.loads(self.state_path.read_text())
            self.gpus = [Gpu(**gpu) for gpu in state["gpus"]]
            self.apps = [App(**app) for app in state["apps"]]
            self._render()

    @property
    def state_path(self) -> Path:
        return self.directory / "state.json"

    def set_gpu(self, index: int, **values: object) -> None:
        """Change attributes of one `Gpu`, as set_gpu(0, temperature_celsius=80)."""
        with self._lock:
            self.gpus[index] = dataclasses.replace(self.gpus[index], **values)  # type: ignore[arg-type]
            self.save()

    def add_app(self, app: App) -> None:
        with self._lock:
            self.apps.append(app)
            self.save()

    def remove_pid(self, pid: int) -> None:
        """Take away the entries of a process that has ended, unless they are to be kept."""
        with self._lock:
            self.apps = [app for app in self.apps if app.pid != pid or app.keep]
            self.save()

    def _render(self) -> None:
        gpus, apps = self.gpus, self.apps
        self._write("gpus", smi_render.gpu_table(gpus, apps))
        self._write("apps", smi_render.app_table(gpus, apps))
        self._write("list", smi_render.gpu_list(gpus))
        self._write("xml", smi_panels.xml(gpus, apps))
        self._write("table", smi_panels.human_table(gpus, apps))
        self._write("help", smi_render.field_help())

    def _write(self, name: str, text: str) -> None:
        write_atomically(self.directory / name, text)

    # Starts

    def starts(self) -> list[str]:
        """The arguments of every start since the last `forget_starts`, oldest first."""
        return self._starts.read_text(errors="replace").splitlines()

    def forget_starts(self) -> None:
        with self._starts.open("w"):
            pass

    # Misbehaving

    def heal(self) -> None:
        """Behave again. What already hangs goes on hanging."""
        for kind in KINDS:
            self._write(f"fault.{kind}", "")

    def delay(self, seconds: float, *, only: str | None = None) -> None:
        """Answer late."""
        self._fault(only, delay=str(seconds))

    def hang(
        self, *, ignore_term: bool = False, stuck: bool = False, only: str | None = None
    ) -> None:
        """Never answer. ignore_term: only SIGKILL ends it. stuck: as on a card in trouble, each
        call leaves behind a process that holds the output open, whatever signal the call gets."""
        how = "stuck" if stuck else "kill" if ignore_term else "term"
        self._fault(only, hang=how)

    def flood(self, line: str = "all work and no play", *, only: str | None = None) -> None:
        """Print the line without end."""
        self._fault(only, flood=line)

    def drip(self, seconds: float, *, only: str | None = None) -> None:
        """Print the usual answer letter by letter, with that pause after each."""
        self._fault(only, drip=str(seconds))

    def say(
        self, out: str | bytes, *, status: int = 0, err: str = "", only: str | None = None
    ) -> None:
        """Always give this answer, such as a recorded one or bytes without meaning."""
        name = only or "any"
        data = out if isinstance(out, bytes) else out.encode()
        write_atomically(self.directory / f"said.{name}.out", data)
        self._write(f"said.{name}.err", err)
        self._fault(only, said=name, status=str(status))

    def garbage(self, *, only: str | None = None) -> None:
        """Print 4 KiB of every byte there is, with status 0."""
        self.say(bytes(range(256)) * 16, only=only)

    def no_driver(self) -> None:
        self.say(NO_DRIVER, status=9, err=NO_DRIVER)

    def driver_mismatch(self) -> None:
        self.say(MISMATCH, status=18)

    def no_devices(self) -> None:
        self.say("No devices were found\n", status=6)

    def library_missing(self) -> None:
        self.say(
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure "
            "that the NVIDIA Display Driver is properly installed and present in your system.\n"
            "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n",
            status=12,
        )

    def lose_gpu(self, index: int, *, whole_answer: bool = False) -> None:
        """A card falls off the bus: its row turns into a sentence (newer drivers, status 0), or
        whole_answer: the sentence is all there is (older drivers, status 15)."""
        short = self.gpus[index].bus_id[4:]
        if whole_answer:
            reason = "GPU is lost.  Reboot the system to recover this GPU"
            sentence = f"Unable to determine the device handle for GPU {short}: {reason}\n"
            self.say(sentence, status=15)
        else:
            sentence = (
                f"Unable to determine the device handle for GPU{index}: {short}: Unknown Error"
            )
            self.set_gpu(index, lost=sentence)

    def uninstall(self) -> None:
        """No nvidia-smi on the PATH any more."""
        self.program.unlink(missing_ok=True)

    def install(self) -> None:
        """Put it on the PATH (again)."""
        # A link, since a file just written may be "busy" while other threads start programs.
        if not self.program.exists():
            self.program.hardlink_to(self.directory / "nvidia_smi.sh")

    def _fault(self, only: str | None, **variables: str) -> None:
        if only is not None and only not in KINDS:
            raise ValueError(f"{only!r} is not one of {', '.join(KINDS)}")
        text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
        for kind in KINDS if only is None else (only,):
            self._write(f"fault.{kind}", text)


__all__ = ["DRIVER", "KINDS", "App", "Gpu", "NvidiaSmi"]
