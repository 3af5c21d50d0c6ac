"""One lab host: an sshd on its own address, with all that makes it look like a machine."""

import os
import pwd
import re
import shlex
import signal
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab import accounts, keys
from tests.lab.errors import LabError, LabNeedsRoot
from tests.lab.files import write_atomically
from tests.lab.processes import (
    LabProcess,
    command_name,
    descendants,
    is_alive,
    pids_in_mount_namespace,
    read_link,
    send,
    sleeper,
    wait_until,
)
from tests.lab.smi import NvidiaSmi
from tests.lab.smi_render import LAB_NAMESPACE, App, gpu_uuid
from tests.lab.sshd import SSHD, sshd_config

HERE = Path(__file__).parent
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LabHost:
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
        self.name, self.address, self.port, self.directory = name, address, port, directory
        self.users, self.observer = tuple(users), observer
        self.observing_key, self.acting_key = observing_key, acting_key
        self.personal_keys = personal_keys
        self.isolated = os.geteuid() == 0
        self._homes = "" if own_homes else str(shared_homes)
        self._utmp, self._observer_in_tty = utmp, observer_in_tty
        self._log_level, self._host_key_kinds = log_level, tuple(host_key_kinds)
        self._holder: subprocess.Popen[bytes] | None = None
        self._listener: subprocess.Popen[bytes] | None = None
        self._left_sessions: set[int] = set()
        self._processes: list[LabProcess] = []
        self._log_start = 0
        directory.mkdir()
        self.smi = NvidiaSmi(host=name, directory=directory, gpus=gpus)

    def __repr__(self) -> str:
        return f"LabHost({self.name} at {self.address}:{self.port})"

    # Coming and going

    def up(self) -> None:
        """Furnish the host and start its listener."""
        for part in ("etc", "keys", "programs"):
            (self.directory / part).mkdir()
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
        if self._holder is None:
            send(self._other_pids(), signal.SIGKILL)
        else:
            self._kill_all()
            assert self._holder.stdin is not None
            self._holder.stdin.close()
            self._holder.wait(10)
            self._holder = None
        for process in self._processes:
            process.end()
        self._processes.clear()

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

    def _hold(self) -> None:
        for needed in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
            if not Path(needed).exists():
                raise LabError(f"this machine has no {needed} that a lab host could replace")
        arguments = [self.name, str(self.directory), self._homes, str(int(self._utmp))]
        unshare = ["unshare", "--mount", "--uts", "--propagation", "private"]
        with (self.directory / "holder.log").open("wb") as log:
            self._holder = subprocess.Popen(
                [*unshare, "sh", str(HERE / "holder.sh"), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        assert self._holder.stdout is not None
        with self._holder.stdout as said:
            if said.readline() != b"ready\n":
                why = (self.directory / "holder.log").read_text(errors="replace").strip()
                raise LabError(f"{self.name} could not be furnished: {why}")

    def _make_homes(self) -> None:
        for user in self.accounts:
            home = self.root / "home" / user
            home.mkdir(mode=0o700, exist_ok=True)
            os.chown(home, *_ids(user))

    # Where things are

    @property
    def accounts(self) -> tuple[str, ...]:
        return (*self.users, self.observer)

    @property
    def root(self) -> Path:
        """The host's file system, seen from outside."""
        return Path(f"/proc/{self._holder.pid}/root") if self._holder else Path("/")

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

    # Host keys

    def _host_key_paths(self) -> list[Path]:
        return [self.directory / f"ssh_host_{kind}_key" for kind in self._host_key_kinds]

    def _make_host_keys(self) -> None:
        for kind, path in zip(self._host_key_kinds, self._host_key_paths(), strict=True):
            keys.make_key(path, kind=kind, comment=self.name)

    @property
    def fingerprint(self) -> str:
        """SHA256:… of the host's first key."""
        return keys.fingerprint(self._host_key_paths()[0])

    @property
    def public_keys(self) -> list[str]:
        """The host's public keys, as "ssh-ed25519 AAAA…"."""
        return [" ".join(keys.public_line(p).split()[:2]) for p in self._host_key_paths()]

    @property
    def known_hosts(self) -> str:
        """Lines that pin the present keys."""
        return "".join(f"[{self.address}]:{self.port} {key}\n" for key in self.public_keys)

    def change_key(self) -> None:
        """New host keys, met by new connections; sessions stay."""
        self._make_host_keys()
        if self._listener is not None:
            self.stop()
            self.start()

    # Who may log in

    def restore_keys(self) -> None:
        """The observing key for the observer, the acting and a personal key for the others."""
        for user in self.accounts:
            role = self.observing_key if user == self.observer else self.acting_key
            self.authorize(user, role, self.personal_keys[user], add=False)

    def authorize(self, user: str, *private_keys: Path | str, add: bool = True) -> None:
        """Let in who holds these keys, given as private key files or as lines of authorized_keys;
        add=False: and nobody else."""
        path = self.directory / "keys" / user
        lines = path.read_text().splitlines() if add and path.exists() else []
        for key in private_keys:
            lines.append(keys.public_line(key) if isinstance(key, Path) else key.strip())
        write_atomically(path, "".join(f"{line}\n" for line in lines))

    def revoke_key(self, user: str) -> None:
        """Take the product's key (observing or acting) from the account; the personal one stays."""
        self.authorize(user, self.personal_keys[user], add=False)

    def set_observer_in_tty(self, member: bool) -> None:
        """Whether the observer belongs to group tty on this host, from its next login on."""
        if self.isolated:
            members = [self.observer] if member else []
            (self.directory / "etc" / "group").write_text(accounts.group_file(tty_members=members))

    # Running things

    def _inside(self) -> list[str]:
        if self._holder is None:
            return []
        return ["nsenter", f"--target={self._holder.pid}", "--mount", "--uts"]

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

    def ssh_command(
        self, user: str, *, key: Path | None = None, options: Sequence[str] = ()
    ) -> list[str]:
        """The OpenSSH client's command line up to the address, with the present host key pinned."""
        known = self.directory / "known_hosts"
        write_atomically(known, self.known_hosts)
        settings = [
            f"UserKnownHostsFile={known}",
            "GlobalKnownHostsFile=/dev/null",
            "StrictHostKeyChecking=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "BatchMode=yes",
            "ConnectTimeout=5",
            "LogLevel=ERROR",
        ]
        arguments = [part for setting in settings for part in ("-o", setting)]
        identity = str(key or self.personal_keys[user])
        target = f"{user}@{self.address}"
        return [
            "ssh",
            "-F",
            "none",
            *arguments,
            *options,
            "-i",
            identity,
            "-p",
            str(self.port),
            target,
        ]

    def ssh(
        self,
        user: str,
        command: str,
        *,
        key: Path | None = None,
        stdin: str = "",
        seconds: float = 30,
        options: Sequence[str] = (),
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command through the OpenSSH client, by default with the person's own key."""
        return subprocess.run(
            [*self.ssh_command(user, key=key, options=options), command],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )

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
        if not path.exists():
            path.write_bytes(sleeper())
            path.chmod(0o755)
        return path

    # The listener and its sessions

    def start(self) -> None:
        """Start the listener."""
        if self._listener is not None:
            raise LabError(f"the listener of {self.name} runs already")
        known = self.log_text(everything=True).count("Server listening")
        command = [SSHD, "-D", "-f", str(self.directory / "sshd_config"), "-E", str(self.log_path)]
        self._listener = subprocess.Popen(
            [*self._inside(), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        wait_until(lambda: self._listens(known), f"sshd of {self.name} listens")

    def _listens(self, known: int) -> bool:
        assert self._listener is not None
        if self._listener.poll() is not None:
            self._listener = None
            raise LabError(f"sshd of {self.name} did not start: {self.log_text(everything=True)}")
        return self.log_text(everything=True).count("Server listening") > known

    def stop(self) -> None:
        """Take away the listener: new connections are refused, sessions stay."""
        if self._listener is None:
            return
        self._left_sessions |= self._session_pids()
        self._listener.kill()
        self._listener.wait()
        self._listener = None

    def _other_pids(self) -> set[int]:
        """Processes of the host besides listener and holder."""
        if self._holder is not None:
            own = read_link(self._holder.pid, "ns/mnt")
            # None: the holder has ended, and with it the host.
            pids = pids_in_mount_namespace(own) if own else set()
            pids.discard(self._holder.pid)
        else:
            roots = {pid for pid in self._left_sessions if is_alive(pid)}
            roots |= {self._listener.pid} if self._listener else set()
            roots |= {process.pid for process in self._processes if process.is_running}
            pids = descendants(roots)
        if self._listener is not None:
            pids.discard(self._listener.pid)
        return pids

    def _session_pids(self) -> set[int]:
        return {pid for pid in self._other_pids() if command_name(pid).startswith("sshd")}

    def _kill_all(self) -> None:
        """Kill until nothing is left: a process may have had a child at the last moment."""

        def nothing_left() -> bool:
            pids = {pid for pid in self._other_pids() if is_alive(pid)}
            send(pids, signal.SIGKILL)
            return not pids

        wait_until(nothing_left, f"all processes of {self.name} have ended")

    # Log

    @property
    def log_path(self) -> Path:
        return self.directory / "sshd.log"

    def log_text(self, *, everything: bool = False) -> str:
        """What sshd has logged since the start or the last `forget_log`; everything: ever."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as log:
            log.seek(0 if everything else self._log_start)
            return log.read().decode(errors="replace")

    def forget_log(self) -> None:
        self._log_start = self.log_path.stat().st_size


def _ids(user: str) -> tuple[int, int]:
    account = pwd.getpwnam(user)
    return account.pw_uid, account.pw_gid


def _exec_as(program: Path, arguments: Sequence[str]) -> list[str]:
    """A command that becomes the program with any arguments, the name it is called by included."""
    script = 'program=$1 name=$2; shift 2; unset PWD OLDPWD SHLVL; exec -a "$name" "$program" "$@"'
    return ["/bin/bash", "-c", script, "bash", str(program), *arguments]
