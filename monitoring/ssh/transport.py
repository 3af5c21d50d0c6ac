"""Fabric and paramiko without their habits: what the library's classes do differently here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import fabric
import paramiko
from paramiko.config import SSHConfig
from paramiko.packet import Packetizer

from monitoring.ssh import keys
from monitoring.ssh.values import Target

# Dead hosts are everyday life here; the caller says what is worth a line in the log.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)
logger = logging.getLogger(__name__)

# Enters a phase of the connection ("handshake", "auth"), for as long as that phase may take.
Phases = Callable[[str], AbstractContextManager[None]]

_CHEAPEST_CIPHER = "aes128-gcm@openssh.com"
_RSA_ALGORITHMS = ("rsa-sha2-512", "rsa-sha2-256")
_REMOTE_FAULTS = (paramiko.SSHException, OSError, EOFError)


class UnknownKey(paramiko.SSHException):
    """Nothing is pinned for this host; `key` is what it offers."""

    def __init__(self, key: paramiko.PKey) -> None:
        super().__init__("host key not pinned")
        self.key = key


class _RefuseUnknown(paramiko.RejectPolicy):
    """Raised before any authentication, with the key that was offered."""

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> NoReturn:
        raise UnknownKey(key)


class _Packetizer(Packetizer):
    """The library starts a timer thread for each handshake that outlives a failed one; ours are
    limited from outside.
    """

    def start_handshake(self, timeout: float) -> None:
        return


class Transport(paramiko.Transport):
    """The cheapest cipher first, the pinned kinds of host keys first, every phase limited, and
    whatever a host makes the library stumble over is an SSHException in the end.
    """

    # What the host said when it hung up, and when it refused to open a channel.
    farewell = ""
    refusal = ""

    def __init__(self, sock: Any, *, pinned: Sequence[str], phases: Phases) -> None:
        super().__init__(sock, packetizer_class=_Packetizer)
        options = self.get_security_options()
        options.ciphers = _first(options.ciphers, [_CHEAPEST_CIPHER])
        options.key_types = _first(options.key_types, _algorithms(pinned))
        self._phases = phases

    def start_client(
        self, event: threading.Event | None = None, timeout: float | None = None
    ) -> None:
        with self._phases("handshake"):
            super().start_client(event)

    def auth_publickey(
        self, username: str, key: paramiko.PKey, event: threading.Event | None = None
    ) -> list[str]:
        with self._phases("auth"):
            return super().auth_publickey(username, key, event)

    def get_exception(self) -> Exception | None:
        error = super().get_exception()
        if error is None or isinstance(error, _REMOTE_FAULTS):
            return error
        return paramiko.SSHException(f"{type(error).__name__}: {error}")

    def banner_text(self) -> str:
        """What the host said before or instead of letting us in, also after it hung up."""
        banner = self.auth_handler.banner if self.auth_handler else None
        return banner.decode(errors="replace") if isinstance(banner, bytes) else banner or ""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # noqa: BLE001  the thread's end: nobody above could take it
            logger.debug("transport thread: %r", error)
            self.saved_exception = error
            self.close()

    def _parse_disconnect(self, m: paramiko.Message) -> None:
        m.get_int()
        self.farewell = m.get_string().decode(errors="replace")

    def _parse_channel_open_failure(self, m: paramiko.Message) -> None:
        m.get_int()
        m.get_int()
        self.refusal = m.get_string().decode(errors="replace")
        m.rewind()
        super()._parse_channel_open_failure(m)  # type: ignore[misc]


class PinnedConnection(fabric.Connection):
    """Fabric's connection without its habits: no configuration files, no agent, no other keys,
    no unknown host key. The transport is at hand from its first moment, so that it can be closed.
    """

    def __init__(self, target: Target, *, sock: Any, phases: Phases) -> None:
        address = target.address
        # `_set`, since an attribute set the plain way would be copied into the configuration.
        self._set(transports=[])

        def make_transport(sock: Any, **_: Any) -> Transport:
            kinds = [line.split()[0] for line in target.pins]
            self.transports.append(Transport(sock, pinned=kinds, phases=phases))
            return self.transports[-1]

        super().__init__(
            host=address.host,
            user=address.user,
            port=address.port,
            config=_configuration(),
            connect_kwargs={
                "sock": sock,
                # Without a pin it ends at the host key: no key of ours is even read.
                "pkey": keys.load_key(target.key_path) if target.pins else None,
                "allow_agent": False,
                "look_for_keys": False,
                # Never the first to end: the phases have limits of their own.
                "banner_timeout": 3600,
                "auth_timeout": 3600,
                "transport_factory": make_transport,
            },
        )
        self.client.set_missing_host_key_policy(_RefuseUnknown())
        for line in target.pins:
            key_type, public_key = line.split()[:2]
            entry = paramiko.hostkeys.HostKeyEntry.from_line(
                f"{address.pin_name} {key_type} {public_key}"
            )
            if entry is not None and entry.key is not None:
                self.client.get_host_keys().add(address.pin_name, key_type, entry.key)

    def close(self) -> None:
        # A failed login leaves its transport's thread running; it ends here in any case.
        for transport in self.transports:
            transport.close()
        self.client.close()


def _configuration() -> fabric.Config:
    """Fabric's defaults alone: no file of the system, the user or OpenSSH is read."""
    return fabric.Config(ssh_config=SSHConfig(), lazy=True, overrides={"load_ssh_configs": False})


def _first(known: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """The known ones, the wanted ones among them in front."""
    front = [one for one in wanted if one in known]
    return (*front, *(one for one in known if one not in front))


def _algorithms(key_types: Sequence[str]) -> list[str]:
    """The signature algorithms of key types; RSA keys have newer ones than their name."""
    return [
        algorithm
        for kind in dict.fromkeys(key_types)
        for algorithm in (_RSA_ALGORITHMS if kind == "ssh-rsa" else (kind,))
    ]
