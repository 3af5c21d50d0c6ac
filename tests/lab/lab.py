"""The lab: several hosts on loopback addresses, their accounts and keys."""

import ipaddress
import os
import pwd
import random
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab import accounts, keys
from tests.lab.errors import LabError, LabNeedsRoot
from tests.lab.host import LabHost

PEOPLE = ("alice", "bob", "carol")
OBSERVER = "thobserver"
FIRST_ADDRESS = ipaddress.IPv4Address("127.0.1.1")


class Lab:
    """Hosts gpu01 (127.0.1.1), gpu02 (127.0.1.2), … for as long as the with block lasts.

    With root each host has accounts for `users` and the observer. Without root the only account
    is the present one, as observer; naming users then raises LabNeedsRoot. Further arguments are
    those of `LabHost`: utmp, observer_in_tty, log_level, host_key_kinds. Shared homes
    (own_homes=False) are one directory seen by all hosts, as over NFS.
    """

    def __init__(
        self,
        *,
        hosts: int = 2,
        gpus: int = 4,
        users: Sequence[str] | None = None,
        observer: str | None = None,
        port: int | None = None,
        own_homes: bool = True,
        utmp: bool = True,
        observer_in_tty: bool = True,
        log_level: str = "VERBOSE",
        host_key_kinds: Sequence[str] = ("ed25519",),
    ) -> None:
        self.is_root = os.geteuid() == 0
        if not self.is_root and (users or observer):
            raise LabNeedsRoot("only root can have other accounts than its own on lab hosts")
        me = pwd.getpwuid(os.geteuid()).pw_name
        self.users = tuple(PEOPLE if users is None else users) if self.is_root else ()
        self.observer = (observer or OBSERVER) if self.is_root else me
        self.addresses = [str(FIRST_ADDRESS + number) for number in range(hosts)]
        self._asked_port = port
        self._gpus = gpus
        self._own_homes = own_homes
        self._options = {
            "utmp": utmp,
            "observer_in_tty": observer_in_tty,
            "log_level": log_level,
            "host_key_kinds": host_key_kinds,
        }
        self.hosts: list[LabHost] = []

    def __enter__(self) -> Self:
        # Hosts show this directory to their accounts: open to all, private keys apart.
        self.directory = Path(tempfile.mkdtemp(prefix="lab-"))
        try:
            self.directory.chmod(0o755)
            self._up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[LabHost]:
        return iter(self.hosts)

    def __getitem__(self, name: str) -> LabHost:
        for host in self.hosts:
            if host.name == name:
                return host
        raise KeyError(name)

    def _up(self) -> None:
        if self.is_root:
            accounts.ensure([*self.users, self.observer])
        self._make_keys()
        self.port = self._asked_port or free_port(self.addresses)
        homes = self.directory / "homes"
        homes.mkdir()
        self.hosts = [self._make_host(number, homes) for number in range(len(self.addresses))]
        self._each(LabHost.up)

    def _make_keys(self) -> None:
        directory = self.directory / "keys"
        directory.mkdir(mode=0o700)
        self.observing_key = keys.make_key(directory / "observing", comment="lab observing")
        self.acting_key = keys.make_key(directory / "acting", comment="lab acting")
        self.personal_keys = {
            user: keys.make_key(directory / f"person-{user}", comment=f"lab {user}")
            for user in (*self.users, self.observer)
        }

    def _make_host(self, number: int, homes: Path) -> LabHost:
        name = f"gpu{number + 1:02}"
        return LabHost(
            name=name,
            address=self.addresses[number],
            port=self.port,
            directory=self.directory / name,
            gpus=self._gpus,
            users=self.users,
            observer=self.observer,
            observing_key=self.observing_key,
            acting_key=self.acting_key,
            personal_keys=self.personal_keys,
            own_homes=self._own_homes,
            shared_homes=homes,
            **self._options,  # type: ignore[arg-type]
        )

    def _each(self, act: Callable[[LabHost], object]) -> None:
        """Do something to all hosts at once. Every host gets its turn; then the first error."""
        with ThreadPoolExecutor(16) as pool:
            results = [pool.submit(act, host) for host in self.hosts]
        for result in results:
            result.result()

    def reset(self) -> None:
        """Bring all hosts back to how they were at the start; see `LabHost.reset`."""
        self._each(LabHost.reset)

    def close(self) -> None:
        """End all hosts and remove their files. The accounts stay, for the next lab."""
        try:
            self._each(LabHost.down)
        finally:
            self.hosts = []
            shutil.rmtree(self.directory)


def free_port(addresses: Sequence[str]) -> int:
    """A port that is free on all the addresses, below those that the kernel gives to clients."""
    for port in random.sample(range(20000, 32000), 200):
        if all(_is_free(address, port) for address in addresses):
            return port
    raise LabError(f"no port is free on all of {', '.join(addresses)}")


def _is_free(address: str, port: int) -> bool:
    with closing(socket.socket()) as probe:
        # As sshd does: connections of an earlier lab that fade away are no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
