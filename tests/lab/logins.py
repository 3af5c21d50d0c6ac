"""Host keys, authorised keys and the OpenSSH client: how one gets into a lab host."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab import accounts, keys
from tests.lab.files import write_atomically
from tests.lab.machine import Machine


class Logins(Machine):
    """A machine with host keys, and accounts that let in certain keys."""

    def __init__(
        self,
        *,
        name: str,
        address: str,
        port: int,
        directory: Path,
        homes: Path | None,
        utmp: bool,
        users: Sequence[str],
        observer: str,
        observing_key: Path,
        acting_key: Path,
        personal_keys: Mapping[str, Path],
        host_key_kinds: Sequence[str],
    ) -> None:
        super().__init__(name=name, directory=directory, homes=homes, utmp=utmp)
        self.address, self.port = address, port
        self.users, self.observer = tuple(users), observer
        self.observing_key, self.acting_key = observing_key, acting_key
        self.personal_keys = personal_keys
        self._host_key_kinds = tuple(host_key_kinds)

    @property
    def accounts(self) -> tuple[str, ...]:
        return (*self.users, self.observer)

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

    # The client

    def ssh_command(
        self,
        user: str,
        *,
        key: Path | None = None,
        known_hosts: str | None = None,
        options: Sequence[str] = (),
    ) -> list[str]:
        """The OpenSSH client's command line up to the address.

        key: the person's own by default. known_hosts: by default pins the present host keys.
        """
        known = self.directory / "known_hosts"
        write_atomically(known, self.known_hosts if known_hosts is None else known_hosts)
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
        command = ["ssh", "-F", "none", *options, "-i", str(key or self.personal_keys[user])]
        command += [part for setting in settings for part in ("-o", setting)]
        return [*command, "-p", str(self.port), f"{user}@{self.address}"]

    def ssh(
        self,
        user: str,
        command: str,
        *,
        key: Path | None = None,
        known_hosts: str | None = None,
        stdin: str = "",
        seconds: float = 30,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command through the OpenSSH client; see `ssh_command`."""
        return subprocess.run(
            [*self.ssh_command(user, key=key, known_hosts=known_hosts), command],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
