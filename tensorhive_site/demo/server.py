"""The simulated hosts: real SSH on loopback, one port each, no shell behind it.

A host knows one thing: the line that asks for a round of the probe. Everything else that a client
sends is read and not run.
"""

from __future__ import annotations

import datetime as dt
import logging
import socket
import threading
from pathlib import Path

import paramiko
from paramiko import common

from tensorhive_site.demo.answers import framed
from tensorhive_site.demo.fleet import FLEET, DemoHost

logger = logging.getLogger(__name__)
LOGIN = "observer"
_LONGEST_LINE = 1 << 20


class Fleet:
    """All hosts of the demo, listening from `first_port` on; stops with `close`."""

    def __init__(self, *, host_key: Path, let_in: str, first_port: int) -> None:
        """`let_in` is the public key line of the observing key."""
        self.key = paramiko.PKey.from_path(host_key)
        self.let_in = let_in.split()[1]
        self.hosts = [
            _Listener(host, first_port + number, self) for number, host in enumerate(FLEET)
        ]

    def close(self) -> None:
        for listener in self.hosts:
            listener.close()


class _Listener:
    """One host: accepts, and drops everybody while it is away."""

    def __init__(self, host: DemoHost, port: int, fleet: Fleet) -> None:
        self.host, self.fleet = host, fleet
        self.server = socket.create_server(("127.0.0.1", port))
        self.open_ones: set[paramiko.Transport] = set()
        self.closed = threading.Event()
        for work in (self._accept, self._leave):
            threading.Thread(target=work, daemon=True, name=f"{host.name}").start()

    def close(self) -> None:
        self.closed.set()
        self.server.close()
        for transport in list(self.open_ones):
            transport.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return  # closed
            if self.host.is_away(_now()):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _leave(self) -> None:
        """When its time comes, the host drops those who are connected."""
        while not self.closed.wait(1):
            if self.host.is_away(_now()):
                for transport in list(self.open_ones):
                    transport.close()

    def _serve(self, connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(self.fleet.key)
        self.open_ones.add(transport)
        try:
            transport.start_server(server=_Session(self))
            while transport.is_active() and not self.closed.wait(0.5):
                continue
        except (paramiko.SSHException, EOFError, OSError) as error:
            logger.info("%s: %s", self.host.name, error)
        finally:
            self.open_ones.discard(transport)
            transport.close()


class _Session(paramiko.ServerInterface):
    def __init__(self, listener: _Listener) -> None:
        self.listener = listener

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        is_ours = username == LOGIN and key.get_base64() == self.listener.fleet.let_in
        return common.AUTH_SUCCESSFUL if is_ours else common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if kind == "session":
            return common.OPEN_SUCCEEDED
        return common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=_converse, args=(self.listener.host, channel), daemon=True).start()
        return True


def _converse(host: DemoHost, channel: paramiko.Channel) -> None:
    """Read lines; answer those that ask for a round."""
    waiting = b""
    try:
        while piece := channel.recv(65536):
            *lines, waiting = (waiting + piece).split(b"\n")
            for line in lines:
                _answer(host, channel, line)
            if len(waiting) > _LONGEST_LINE:
                break
        channel.send_exit_status(0)
    except OSError as error:
        logger.info("%s: %s", host.name, error)
    finally:
        channel.close()


def _answer(host: DemoHost, channel: paramiko.Channel, line: bytes) -> None:
    words = line.decode(errors="replace").split()
    if words[:1] == ["th_probe"] and len(words) > 1 and words[1].isalnum():
        channel.sendall(framed(host, words[1], _now(), words[2:]).encode())


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
