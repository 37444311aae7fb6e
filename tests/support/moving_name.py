"""A name whose address changes, as that of a pod that was made anew: a DNS server on this machine."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

_HEADER = 12
_A_RECORD, _IN_NET = 1, 1
_ANSWER, _NAME_OF_THE_QUESTION = 0x8180, b"\xc0\x0c"


class MovingName(asyncio.DatagramProtocol):
    """``address``: what every name stands for now. ``target(port)``: what gRPC dials to reach that port of it by this server.

    ``unheard``: the port from which questions first came gets no answer, as where a balancer sends each port's questions to one
    of several servers, and that one is gone.
    """

    def __init__(self, address: str, *, unheard: bool = False) -> None:
        self.address = address
        self._unheard = unheard
        self._first: tuple[str, int] | None = None
        self._transport: asyncio.DatagramTransport | None = None

    def target(self, port: int) -> str:
        assert self._transport is not None
        _, asked = self._transport.get_extra_info("sockname")
        return f"dns://127.0.0.1:{asked}/pod.test.:{port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        self._first = self._first or addr
        if self._unheard and addr == self._first:
            return
        at = _HEADER
        while data[at]:
            at += data[at] + 1
        question = data[_HEADER : at + 5]
        [kind] = struct.unpack(">H", question[-4:-2])
        found = kind == _A_RECORD
        record = struct.pack(">HHIH", _A_RECORD, _IN_NET, 0, 4) + socket.inet_aton(self.address)
        counts = struct.pack(">HHHHH", _ANSWER, 1, int(found), 0, 0)
        self._transport.sendto(data[:2] + counts + question + (_NAME_OF_THE_QUESTION + record if found else b""), addr)


@asynccontextmanager
async def moving_name(address: str, *, unheard: bool = False) -> AsyncIterator[MovingName]:
    """Answers while the block runs."""
    transport, name = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: MovingName(address, unheard=unheard), local_addr=("127.0.0.1", 0)
    )
    try:
        yield name
    finally:
        transport.close()
