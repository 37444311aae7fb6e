"""Binds a gRPC server to every address that its host has on this machine."""

import errno
import socket
from contextlib import ExitStack
from typing import Final

import grpc

from headgate_runtime.values import Address

_NOT_HERE: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_TRIES: Final = 20
"""Ports that are tried for port 0, of which each may be taken at the second address."""


def listen(server: grpc.aio.Server, address: Address, credentials: grpc.ServerCredentials | None) -> str:
    """Returns the host:port really bound; port 0 takes one that is free at all addresses of the host.

    gRPC by itself is content with some of a name's addresses ("localhost" has two): a client that then tries another one meets
    the program that had the port before. Addresses that a name has and this machine has not (no IPv6) are left out.
    Raises OSError if one of them is taken, or none is of this machine.
    """
    free = _free(address)
    if not free:
        raise OSError(errno.EADDRNOTAVAIL, f"cannot listen on {address}: {address.host} is no address of this machine")
    for each in free:
        try:
            _ = server.add_secure_port(str(each), credentials) if credentials else server.add_insecure_port(str(each))
        except RuntimeError as e:
            raise _taken(each) from e
    return str(address._replace(port=free[0].port))


def _free(address: Address) -> list[Address]:
    """The numeric addresses on this machine, of one port that was free at all of them a moment ago."""
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    hosts = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    for _ in range(_TRIES):
        free: list[Address] = []
        with ExitStack() as sockets:
            for host in hosts:
                wanted = Address(host, free[0].port if free else address.port)
                try:
                    free.append(_bound(sockets, wanted))
                except OSError as e:
                    if e.errno in _NOT_HERE:
                        continue
                    if e.errno != errno.EADDRINUSE:
                        raise
                    if address.port:
                        raise _taken(wanted) from e
                    break
            else:
                return free
    raise OSError(errno.EADDRINUSE, f"cannot listen on {address}: no port is free at all of {', '.join(hosts)}")


def _bound(sockets: ExitStack, address: Address) -> Address:
    """The address with its port, which stays taken until ``sockets`` closes."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    held = sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
    if family == socket.AF_INET6:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((address.host, address.port))
    return address._replace(port=int(held.getsockname()[1]))


def _taken(address: Address) -> OSError:
    return OSError(errno.EADDRINUSE, f"cannot listen on {address}; is another process there?")
