"""probe.sh itself, in real shells beside a played nvidia-smi and real processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from monitoring import probe
from monitoring.snapshot import SectionState, Snapshot

CARD = "GPU-e49955df-b975-1fc3-9041-fb831fb4e24b"
INSTANCE = "MIG-ac55b094-ccc0-8e4f-f14a-7f2cf01e2caa"
SHELLS = {"dash": ["dash", "-s"], "bash": ["bash", "--posix", "-s"]}
NOBODY = 65534

PLAYED = """#!/bin/sh
echo "$1" >>"$TH_TEST/starts"
case $1 in
--query-gpu*) cat "$TH_TEST/gpus" ;;
--query-compute-apps*) cat "$TH_TEST/processes" ;;
-L) cat "$TH_TEST/list" ;;
-q) cat "$TH_TEST/xml" ;;
pmon) cat "$TH_TEST/pmon" ;;
esac
"""
HANGING = """#!/bin/sh
echo "$1" >>"$TH_TEST/starts"
trap '' TERM
while :; do sleep 1; done
"""
GPUS = f"""index, uuid, pci.bus_id, name, memory.used [MiB]
0, {CARD}, 00000000:01:00.0, NVIDIA H20, 4
"""
XML = f"""<?xml version="1.0" ?>
<nvidia_smi_log>
  <driver_version>580.1</driver_version>
  <gpu id="00000000:01:00.0">
    <product_name>NVIDIA H20</product_name>
    <uuid>{CARD}</uuid>
    <mig_devices>
      <mig_device>
        <index>0</index>
        <gpu_instance_id>1</gpu_instance_id>
        <compute_instance_id>0</compute_instance_id>
      </mig_device>
    </mig_devices>
    <processes>
      <process_info>
        <gpu_instance_id>1</gpu_instance_id>
        <compute_instance_id>0</compute_instance_id>
        <pid>PID</pid>
      </process_info>
    </processes>
    <supported_clocks>
      <supported_mem_clock>
        <value>9001 MHz</value>
      </supported_mem_clock>
    </supported_clocks>
  </gpu>
</nvidia_smi_log>
"""


@dataclass(slots=True)
class Machine:
    """A folder with a played nvidia-smi, and an account that no other test uses."""

    folder: Path
    uid: int | None
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def say(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def install(self, script: str) -> None:
        program = self.folder / "bin" / "nvidia-smi"
        program.write_text(script)
        program.chmod(0o755)

    def start(self, *arguments: str, program: str = "sleep") -> int:
        """A process that lives until the test ends; as root it is nobody's."""
        copied = self.folder / program
        shutil.copy(shutil.which("sleep") or "/bin/sleep", copied)
        child = subprocess.Popen(
            [*(arguments or (program,)), "600"],
            executable=copied,
            user=NOBODY if self.uid is not None else None,
        )
        self.children.append(child)
        return child.pid

    def answer(self, shell: str, *lines: str) -> bytes:
        """What the shell says to the probe's text followed by these lines.

        Into a file: a stuck program would keep the end of a pipe open.
        """
        with tempfile.TemporaryFile() as out:
            subprocess.run(
                SHELLS[shell],
                input="\n".join([probe.function_text(), *lines, ""]).encode(),
                stdout=out,
                stderr=subprocess.DEVNULL,
                env={
                    "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                    "HOME": str(self.folder),
                    "TH_TEST": str(self.folder),
                },
                user=self.uid,
                timeout=120,
                check=False,
            )
            out.seek(0)
            return out.read()

    def ask(self, shell: str, **options: bool) -> Snapshot:
        found = probe.read_snapshot(
            self.answer(shell, probe.request_line("w0rd", **options)), "w0rd"
        )
        assert isinstance(found, Snapshot), found
        return found

    def starts(self) -> list[str]:
        """The first word of each start of nvidia-smi since the last look."""
        path = self.folder / "starts"
        words = [line.split("=")[0] for line in path.read_text().splitlines()]
        path.write_text("")
        return words

    @property
    def private(self) -> Path:
        own = os.getuid() if self.uid is None else self.uid
        run = Path(f"/run/user/{own}")
        return run if run.is_dir() else Path(f"/tmp/tensorhive-{own}")  # noqa: S108


@pytest.fixture
def machine() -> Iterator[Machine]:
    folder = Path(tempfile.mkdtemp(prefix="probe-test-"))
    (folder / "bin").mkdir()
    uid = 610_000_000 + os.getpid() if os.getuid() == 0 else None
    made = Machine(folder, uid)
    if uid is not None:
        os.chown(folder, uid, uid)
        folder.chmod(0o755)
    made.install(PLAYED)
    made.say("starts", "")
    (folder / "starts").chmod(0o666)
    made.say("gpus", GPUS)
    made.say("processes", "")
    yield made
    for child in made.children:
        child.kill()
        child.wait()
    shutil.rmtree(folder)
    if uid is not None:
        shutil.rmtree(made.private, ignore_errors=True)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_round_brings_everything_with_two_starts(machine: Machine, shell: str) -> None:
    pid = machine.start("python", "1e3")
    machine.say("processes", f"{CARD}, {pid}, 700, python\n")
    found = machine.ask(shell)
    assert machine.starts() == ["--query-gpu", "--query-compute-apps"]
    (process,) = found.processes
    stat = Path(f"/proc/{pid}/stat").read_text()
    assert process.start_ticks == int(stat.rpartition(")")[2].split()[19])
    assert process.uid == (os.getuid() if machine.uid is None else NOBODY)
    assert process.login
    assert process.command == "python 1e3 600"
    assert process.age_seconds is not None
    assert process.cgroup
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found.cpu is not None
    assert found.cpu.cores == os.cpu_count()
    assert found.memory_total_mib
    assert found.disks
    assert found.clock_seconds
    assert {name: one for name, one in found.sections.items() if not one.is_complete} == {}


def test_a_kept_shell_answers_each_line(machine: Machine, shell: str) -> None:
    lines = [probe.request_line("first1", first=True), probe.request_line("second2")]
    answer = machine.answer(shell, *lines, "th_probe ../../x", "th_probe")
    for nonce in ("first1", "second2"):
        found = probe.read_snapshot(answer, nonce)
        assert isinstance(found, Snapshot)
        assert [gpu.uuid for gpu in found.gpus] == [CARD]
    assert answer.count(b" done\n") == 2  # a word that is none is not answered


def test_a_name_with_newline_and_bracket_is_only_a_name(machine: Machine, shell: str) -> None:
    evil = machine.start("evil\n@@x command\n) R 1", program="a\n) R 1 1")
    good = machine.start("good")
    machine.say("processes", f"{CARD}, {evil}, 1, evil\n{CARD}, {good}, 1, good\n")
    first, second = machine.ask(shell).processes
    ticks = Path(f"/proc/{evil}/stat").read_text().rpartition(")")[2].split()[19]
    assert (first.pid, first.start_ticks) == (evil, int(ticks))
    assert first.command == "evil @@x command ) R 1 600"
    assert second.command == "good 600"


def test_a_process_that_is_gone_has_no_owner(machine: Machine, shell: str) -> None:
    machine.say("processes", f"{CARD}, 4194305, 1, [Not Found]\n")
    (process,) = machine.ask(shell).processes
    assert (process.pid, process.uid, process.memory_used_mib) == (4194305, None, 1)


def test_garbage_costs_only_the_gpus(machine: Machine, shell: str) -> None:
    machine.install(f"#!/bin/sh\necho start >>'{machine.folder}/starts'\nhead -c 300000 /dev/zero\n"
                    "printf '\\377\\033[2J@@w0rd done\\n'\n")  # fmt: skip
    found = machine.ask(shell)
    assert found.sections["gpus"].state is SectionState.ERROR
    assert found.gpus == found.processes == ()
    assert found.memory_total_mib


def test_a_machine_without_nvidia_smi_says_so(machine: Machine, shell: str) -> None:
    (machine.folder / "bin" / "nvidia-smi").unlink()
    found = machine.ask(shell)
    assert (found.host_fault, found.sections["gpus"].fault) == ("no_driver", "not-installed")
    assert found.memory_total_mib


def test_no_other_nvidia_smi_starts_beside_a_running_one(machine: Machine, shell: str) -> None:
    machine.ask(shell)
    machine.starts()
    (lock,) = machine.private.glob("th-*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = machine.ask(shell)
    assert machine.starts() == []
    faults = {name: found.sections[name].fault for name in ("gpus", "processes", "owners")}
    assert set(faults.values()) == {"still-running"}
    assert found.memory_total_mib
    assert machine.ask(shell).sections["gpus"].is_complete


def test_what_is_left_out_is_named_so_everywhere(machine: Machine, shell: str) -> None:
    found = machine.ask(shell, skip_gpu=True)
    assert machine.starts() == []
    assert {found.sections[name].fault for name in ("gpus", "processes", "owners")} == {"left-out"}


def test_a_program_that_ignores_its_end_costs_only_the_gpus(machine: Machine) -> None:
    machine.install(HANGING)
    hung = machine.ask("dash")
    assert machine.starts() == ["--query-gpu"]  # after a hang no second one is started
    assert {hung.sections[name].fault for name in ("gpus", "processes")} == {"timeout"}
    assert hung.host_fault is None
    assert hung.memory_total_mib


def test_instances_are_listed_and_placed_with_two_starts(machine: Machine, shell: str) -> None:
    pid = machine.start()
    machine.say("xml", XML.replace("PID", str(pid)))
    machine.say("list", f"GPU 0: NVIDIA H20 (UUID: {CARD})\n  MIG 1g.10gb     Device  0: "
                        f"(UUID: {INSTANCE})\n")  # fmt: skip
    lines = [probe.request_line("one1", first=True), probe.request_line("two2")]
    answer = machine.answer(shell, *lines)
    assert b"supported_mem_clock" not in answer
    assert machine.starts() == ["--query-gpu", "-L", "-q", "-L", "-q"]
    for nonce in ("one1", "two2"):
        found = probe.read_snapshot(answer, nonce)
        assert isinstance(found, Snapshot)
        assert [gpu.uuid for gpu in found.gpus] == [CARD, INSTANCE]
        assert [(one.pid, one.gpu_uuid) for one in found.processes] == [(pid, INSTANCE)]
        assert found.processes[0].uid is not None


def test_processes_that_only_draw_come_from_pmon(machine: Machine, shell: str) -> None:
    pid = machine.start()
    machine.say("pmon", f"# gpu pid type fb command\n# Idx # C/G MB name\n 0 {pid} G 4 Xorg\n")
    (process,) = machine.ask(shell, pmon=True).processes
    assert (process.pid, process.kind, process.gpu_uuid) == (pid, "G", CARD)
    assert process.uid is not None


def test_more_processes_than_are_read_are_told(machine: Machine, shell: str) -> None:
    machine.say("processes", "".join(f"{CARD}, {4194305 + n}, 1, x\n" for n in range(5000)))
    found = machine.ask(shell)
    assert len(found.processes) == 4090
    assert found.sections["processes"].fault == "cut"
