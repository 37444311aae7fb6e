"""Binds a gRPC server to every address that its host has on this machine."""

import errno
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import grpc

from headgate_runtime.lifecycle import StartError
from headgate_runtime.values import Address

_NOT_HERE: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_TRIES: Final = 20
"""Ports that are tried for port 0, of which each may be taken at the second address."""
_ANOTHER_HOST: Final = "Give a host of this machine, or 0.0.0.0 or [::] for all of its addresses."
_ADVICE: Final[Mapping[int | None, str]] = {
    errno.EADDRINUSE: "Is another process there? End it, or choose another port.",
    errno.EACCES: "Choose a port above 1023, or run it with CAP_NET_BIND_SERVICE.",
    errno.EADDRNOTAVAIL: _ANOTHER_HOST,
    socket.EAI_NONAME: _ANOTHER_HOST,
    socket.EAI_AGAIN: _ANOTHER_HOST,
}


class ListenError(StartError):
    """A server cannot listen at an address: why, and what to do. ``code``: the system's errno, or one of getaddrinfo."""

    def __init__(self, address: Address, code: int | None, why: str) -> None:
        super().__init__(f"cannot listen on {address}: {why}. {_ADVICE.get(code, 'Choose another address.')}")
        self.code = code


def listen(server: grpc.aio.Server, address: Address, credentials: grpc.ServerCredentials | None) -> str:
    """Returns the host:port really bound; port 0 takes one that is free at all addresses of the host.

    gRPC by itself is content with some of a name's addresses ("localhost" has two): a client that then tries another one meets
    the program that had the port before. Addresses that a name has and this machine has not (no IPv6) are left out.
    Raises ListenError if one of them is taken or may not be, or none is of this machine.
    """
    free = _free(address)
    for each in free:
        try:
            _ = server.add_secure_port(str(each), credentials) if credentials else server.add_insecure_port(str(each))
        except RuntimeError as e:
            raise ListenError(each, errno.EADDRINUSE, "gRPC cannot bind it") from e
    return str(address._replace(port=free[0].port))


def _free(address: Address) -> Sequence[Address]:
    """The numeric addresses on this machine, of one port that was free at all of them a moment ago."""
    hosts = _numeric_hosts(address)
    for _ in range(_TRIES):
        try:
            free = _free_together(hosts, address.port)
        except ListenError as e:
            if address.port or e.code != errno.EADDRINUSE:
                raise
            continue
        if not free:
            raise ListenError(address, errno.EADDRNOTAVAIL, f"{address.host} is no address of this machine")
        return free
    raise ListenError(address, errno.EADDRINUSE, f"no port is free at all of {', '.join(hosts)}")


def _numeric_hosts(address: Address) -> Sequence[str]:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as e:
        raise ListenError(address, e.errno, str(e.strerror)) from e
    except UnicodeError as e:
        raise ListenError(address, socket.EAI_NONAME, f"its host cannot be a name ({e})") from e
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def _free_together(hosts: Sequence[str], port: int) -> Sequence[Address]:
    """One address for each host that this machine has; port 0 becomes the same for all."""
    free: list[Address] = []
    with ExitStack() as sockets:
        for host in hosts:
            wanted = Address(host, free[0].port if free else port)
            try:
                free.append(_bound(sockets, wanted))
            except OSError as e:
                if e.errno not in _NOT_HERE:
                    raise ListenError(wanted, e.errno, str(e.strerror)) from e
    return free


def _bound(sockets: ExitStack, address: Address) -> Address:
    """The address with its port, which stays taken until ``sockets`` closes."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    held = sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
    if family == socket.AF_INET6:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((address.host, address.port))
    return address._replace(port=int(held.getsockname()[1]))
