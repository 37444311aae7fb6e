"""A server is reached at every address that its host has, or it does not start."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import pytest

from headgate_runtime.listening import ListenError, listen
from headgate_runtime.values import Address

LOOPBACKS = [("::1", socket.AF_INET6), ("127.0.0.1", socket.AF_INET)]


@contextmanager
def another_process(host: str, port: int = 0) -> Iterator[int]:
    """Has a port of ``host`` alone."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.bind((host, port))
        listener.listen()
        yield listener.getsockname()[1]


def localhost_has(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    """As in /etc/hosts of most machines, whatever this one says."""

    def resolved(_host: str, port: int, **_kwargs: Any) -> list[Any]:
        return [(None, None, None, "", (host, port)) for host in hosts]

    monkeypatch.setattr("headgate_runtime.listening.socket.getaddrinfo", resolved)


async def connects(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as client:
        return client.connect_ex((host, port)) == 0


async def test_a_name_is_served_at_each_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    localhost_has(monkeypatch, "::1", "127.0.0.1")
    server = grpc.aio.server()
    address = Address.parse(listen(server, Address("localhost", 0), None))
    await server.start()
    try:
        assert address.host == "localhost"
        assert [await connects(host, address.port) for host, _ in LOOPBACKS] == [True, True]
    finally:
        await server.stop(None)


@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
async def test_a_port_that_another_process_has_at_one_of_the_addresses_is_refused(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    localhost_has(monkeypatch, "::1", "127.0.0.1")
    with another_process(host) as port, pytest.raises(ListenError, match="Is another process there") as refused:
        listen(grpc.aio.server(), Address("localhost", port), None)
    assert refused.value.code == errno.EADDRINUSE


async def test_a_free_port_is_free_at_all_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ports that are free at the first address are taken at the second one."""
    localhost_has(monkeypatch, "127.0.0.1", "127.0.0.2")
    chosen: list[int] = []
    with ExitStack() as others:
        bind = socket.socket.bind

        def chosen_badly(self: socket.socket, address: tuple[str, int]) -> None:
            bind(self, address)
            if address == ("127.0.0.1", 0) and len(chosen) < 3:
                chosen.append(self.getsockname()[1])
                others.enter_context(another_process("127.0.0.2", chosen[-1]))

        monkeypatch.setattr(socket.socket, "bind", chosen_badly)
        port = Address.parse(listen(grpc.aio.server(), Address("localhost", 0), None)).port
    assert len(chosen) == 3
    assert port not in chosen


async def test_an_address_that_this_machine_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    localhost_has(monkeypatch, "2001:db8::1", "127.0.0.1")
    assert Address.parse(listen(grpc.aio.server(), Address("localhost", 0), None)).port > 0
    localhost_has(monkeypatch, "2001:db8::1")
    with pytest.raises(ListenError, match="localhost is no address of this machine"):
        listen(grpc.aio.server(), Address("localhost", 0), None)


async def test_a_port_that_is_not_allowed_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_self: socket.socket, _address: tuple[str, int]) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", denied)
    with pytest.raises(ListenError, match=r"cannot listen on 127.0.0.1:80: Permission denied\. Choose a port above 1023"):
        listen(grpc.aio.server(), Address("127.0.0.1", 80), None)


async def test_a_host_that_is_not_known_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: Any, **_kwargs: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("headgate_runtime.listening.socket.getaddrinfo", unknown)
    with pytest.raises(ListenError, match=r"cannot listen on writer-9:7070: Name or service not known\. Give a host of this"):
        listen(grpc.aio.server(), Address("writer-9", 7070), None)
