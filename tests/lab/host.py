"""One lab host: who may log in, what runs there, and what can happen to it."""

import os
import pwd
import re
import shlex
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.lab.errors import LabError, LabNeedsRoot
from tests.lab.logins import Logins
from tests.lab.processes import LabProcess, read_link, sleeper, wait_until
from tests.lab.smi import NvidiaSmi
from tests.lab.smi_render import LAB_NAMESPACE, App, gpu_uuid
from tests.lab.sshd import sshd_config
from tests.lab.terminals import Terminal, terminals_belong_to_group_tty

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LabHost(Logins):
    """A host of the lab, made by `Lab`.

    With root it is isolated: hostname, machine-id, boot id, /run, /tmp, /var/log, terminals and
    (own_homes) /home are its own; network, kernel, process numbers and accounts are shared.
    """

    def __init__(
        self,
        *,
        name: str,
        address: str,
        port: int,
        directory: Path,
        gpus: int,
        users: Sequence[str],
        observer: str,
        observing_key: Path,
        acting_key: Path,
        personal_keys: Mapping[str, Path],
        own_homes: bool = True,
        shared_homes: Path | None = None,
        utmp: bool = True,
        observer_in_tty: bool = True,
        log_level: str = "VERBOSE",
        host_key_kinds: Sequence[str] = ("ed25519",),
    ) -> None:
        super().__init__(
            name=name,
            address=address,
            port=port,
            directory=directory,
            homes=None if own_homes else shared_homes,
            utmp=utmp,
            users=users,
            observer=observer,
            observing_key=observing_key,
            acting_key=acting_key,
            personal_keys=personal_keys,
            host_key_kinds=host_key_kinds,
        )
        self._observer_in_tty, self._log_level = observer_in_tty, log_level
        self._terminals: list[Terminal] = []
        for part in (".", "etc", "keys", "programs"):
            (directory / part).mkdir()
        # Other programs are links to this one; see `NvidiaSmi.install`.
        self._sleeper = directory / "programs" / ".sleeper"
        self._sleeper.write_bytes(sleeper())
        self._sleeper.chmod(0o755)
        self.smi = NvidiaSmi(host=name, directory=directory, gpus=gpus)

    def __repr__(self) -> str:
        return f"LabHost({self.name} at {self.address}:{self.port})"

    # Coming and going

    def up(self) -> None:
        """Furnish the host and start its listener."""
        self._write_identity()
        self._make_host_keys()
        self.restore_keys()
        (self.directory / "sshd_config").write_text(self._config())
        if self.isolated:
            self._hold()
            self._make_homes()
        self.start()

    def down(self) -> None:
        """End everything that runs on the host."""
        self.stop()
        self._end_everything()
        self._release()

    def _end_everything(self) -> None:
        """End all but the listener."""
        self._kill_all()
        for terminal in self._terminals:
            terminal.close()
        self._terminals.clear()
        for process in self._processes:
            process.end()
        self._processes.clear()

    def reboot(self) -> None:
        """End all that runs on the host, listener included, and start with a new boot id."""
        if not self.isolated:
            raise LabNeedsRoot("only root can give a lab host another boot id")
        self.stop()
        self._end_everything()
        self._forget_files()
        self._write_boot_id()
        self.start()

    def reset(self) -> None:
        """End what tests left behind: processes, sessions, faults, files, keys, log.

        Host key and boot id stay as they are.
        """
        if self._listener is None:
            self.start()
        self._end_everything()
        self.resume()
        self.smi.reset()
        self.restore_keys()
        self.set_observer_in_tty(self._observer_in_tty)
        if self.isolated:
            self._forget_files()
            for user in self.accounts:
                self._empty(f"home/{user}")
        self.forget_log()

    def _write_identity(self) -> None:
        machine = uuid.uuid5(LAB_NAMESPACE, f"{self.name} at {self.address}").hex
        (self.directory / "etc" / "machine-id").write_text(machine + "\n")
        self._write_boot_id()
        self.set_observer_in_tty(self._observer_in_tty)

    def _write_boot_id(self) -> None:
        # In place: the file is mounted over the kernel's, by inode.
        (self.directory / "etc" / "boot_id").write_text(f"{uuid.uuid4()}\n")

    def _config(self) -> str:
        return sshd_config(
            address=self.address,
            port=self.port,
            directory=self.directory,
            host_keys=self._host_key_paths(),
            path=self.path,
            log_level=self._log_level,
        )

    def _make_homes(self) -> None:
        for user in self.accounts:
            home = self.root / "home" / user
            home.mkdir(mode=0o700, exist_ok=True)
            os.chown(home, *_ids(user))

    # Where things are

    @property
    def path(self) -> str:
        """PATH of those who log in."""
        return f"{self.directory / 'bin'}:{SYSTEM_PATH}"

    @property
    def boot_id(self) -> str:
        return (self.directory / "etc" / "boot_id").read_text().strip()

    @property
    def machine_id(self) -> str:
        return (self.directory / "etc" / "machine-id").read_text().strip()

    def gpu_uuid(self, index: int) -> str:
        return gpu_uuid(self.name, index)

    # Running things

    def _as(self, user: str) -> list[str]:
        if self.isolated:
            return [
                *self._inside(),
                "setpriv",
                f"--reuid={user}",
                f"--regid={user}",
                "--init-groups",
            ]
        if user != self.observer:
            raise LabNeedsRoot(f"only root can start a process of {user}")
        return []

    def run(
        self, command: Sequence[str], *, user: str | None = None, seconds: float = 30
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command on the host without SSH, as user or as the lab's own account."""
        prefix = self._inside() if user is None else self._as(user)
        environment = {**os.environ, "PATH": self.path}
        return subprocess.run(
            [*prefix, *command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            cwd="/",
            env=environment,
        )

    def open_terminal(self, *, user: str) -> Terminal:
        """Log a person in as by hand, with a real terminal and a shell."""
        if not self.isolated and not terminals_belong_to_group_tty():
            raise LabNeedsRoot(
                "only root's sshd can hand out terminals: /dev/pts has no gid=tty here"
            )
        devices = self.root / "dev" if self.isolated else Path("/dev")
        terminal = Terminal(self.ssh_command(user, options=["-tt"]), devices=devices)
        self._terminals.append(terminal)
        return terminal

    def start_process(
        self,
        *,
        user: str,
        gpu: int | Sequence[int] | None = None,
        memory_mib: int = 1000,
        command: str | Sequence[str] = "python train.py",
        environment: Mapping[str, str] | None = None,
        type: str = "C",
        ignore_term: bool = False,
        keep: bool = False,
    ) -> LabProcess:
        """Start a real process of a person that sleeps, shown by nvidia-smi on these GPUs.

        gpu None: on no GPU. ignore_term: only SIGKILL ends it. keep: nvidia-smi goes on showing it
        after its end. The environment holds nothing else than what is given.
        """
        arguments = shlex.split(command) if isinstance(command, str) else list(command)
        program = self._program(arguments[0])
        ignore = ["--ignore-signal=TERM,INT,HUP"] if ignore_term else []
        variables = [f"{name}={value}" for name, value in (environment or {}).items()]
        start = [*self._as(user), "env", "-i", *ignore, *variables, *_exec_as(program, arguments)]
        popen = subprocess.Popen(
            start,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        process = LabProcess(popen, user=user, on_end=self.smi.remove_pid)
        self._processes.append(process)
        wait_until(
            lambda: not process.is_running or read_link(process.pid, "exe") == str(program),
            f"{arguments} runs on {self.name}",
        )
        if not process.is_running:
            raise LabError(f"{arguments} could not be started on {self.name} as {user}")
        for index in [gpu] if isinstance(gpu, int) else gpu or []:
            self.smi.add_app(
                App(index, process.pid, arguments[0], str(memory_mib), type=type, keep=keep)
            )
        return process

    def _program(self, name: str) -> Path:
        """The sleeping program under a name; the kernel takes the process's name from it."""
        safe = re.sub(r"[/\0]", "_", name.rsplit("/", 1)[-1]) or "_"
        path = self.directory / "programs" / safe
        with suppress(FileExistsError):
            path.hardlink_to(self._sleeper)
        return path


def _ids(user: str) -> tuple[int, int]:
    account = pwd.getpwnam(user)
    return account.pw_uid, account.pw_gid


def _exec_as(program: Path, arguments: Sequence[str]) -> list[str]:
    """A command that becomes the program with any arguments, the name it is called by included."""
    # A shell would add variables of its own to the environment.
    return ["perl", "-e", "my $program = shift; exec {$program} @ARGV", str(program), *arguments]
