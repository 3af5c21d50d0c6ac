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
LOCK = Path("/run/tensorhive-lab-accounts.lock")


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
    _require_root()
    with _one_at_a_time():
        for name in names:
            account = _find(name)
            if account is None:
                _create(name)
            elif account.pw_gecos != MARK:
                raise LabError(f"the account {name} exists and was not made by the lab")


def _require_root() -> None:
    if os.geteuid() != 0:
        raise LabNeedsRoot("only root can make and remove the accounts of a lab")


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


def remove(names: Iterable[str] | None = None) -> list[str]:
    """Remove these accounts, or all, as far as labs made them; return the names. No lab may run."""
    _require_root()
    with _one_at_a_time():
        wanted = None if names is None else set(names)
        removed = [name for name in made_by_the_lab() if wanted is None or name in wanted]
        for name in removed:
            _run(["userdel", name])
    return removed


def group_file(*, tty_members: Iterable[str]) -> str:
    """/etc/group of this machine, with these lab accounts in group tty besides its members."""
    lines = []
    for group in grp.getgrall():
        members = list(group.gr_mem)
        if group.gr_name == "tty":
            members += [name for name in tty_members if name not in members]
        lines.append(f"{group.gr_name}:x:{group.gr_gid}:{','.join(members)}\n")
    return "".join(lines)
