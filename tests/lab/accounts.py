"""Unix accounts of the lab, marked in /etc/passwd so that no other account is ever touched."""

import fcntl
import grp
import os
import pwd
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.errors import LabError, LabNeedsRoot

MARK = "tensorhive lab account"
LOCK = Path("/run/lock/tensorhive-lab-accounts")


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Several labs may start at the same moment."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _find(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def ensure(names: Iterable[str]) -> None:
    """Create the accounts that are missing: no password, home not created, shell bash.

    Raises LabError when a name belongs to an account that the lab did not make.
    """
    if os.geteuid() != 0:
        raise LabNeedsRoot("only root can create the accounts of a lab")
    with _one_at_a_time():
        for name in names:
            account = _find(name)
            if account is None:
                _create(name)
            elif account.pw_gecos != MARK:
                raise LabError(f"the account {name} exists and was not made by the lab")


def _create(name: str) -> None:
    # "*" is a password nobody can type, yet unlike "!" no locked account, which sshd refuses.
    options = ["--no-create-home", "--user-group", "--shell", "/bin/bash", "--password", "*"]
    _run(["useradd", *options, "--comment", MARK, name])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


def made_by_the_lab() -> list[str]:
    return [account.pw_name for account in pwd.getpwall() if account.pw_gecos == MARK]


def remove() -> list[str]:
    """Remove all accounts that labs made, and return their names. No lab may run."""
    with _one_at_a_time():
        names = made_by_the_lab()
        for name in names:
            _run(["userdel", name])
    return names


def group_file(*, tty_members: Iterable[str]) -> str:
    """/etc/group of this machine, with these lab accounts in group tty besides its members."""
    lines = []
    for group in grp.getgrall():
        members = list(group.gr_mem)
        if group.gr_name == "tty":
            members += [name for name in tty_members if name not in members]
        lines.append(f"{group.gr_name}:x:{group.gr_gid}:{','.join(members)}\n")
    return "".join(lines)
