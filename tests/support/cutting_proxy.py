"""A TCP proxy that cuts connections in the middle of what they carry, or holds everything back."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass
class CuttingProxy:
    """Stands before one server. ``cut_after`` bytes towards the server all connections are reset, once; ``cut()`` does it now.

    ``cut_answer_to``: they are reset once, in the place of the server's answer to a message that has these bytes.
    ``connections``: how many are open. ``delay``: seconds before a connection gets any further.
    """

    upstream: str
    address: str = ""
    cut_after: int | None = None
    cut_answer_to: bytes = b""
    delay: float = 0.0
    cuts: int = 0
    connections: int = 0
    _open: list[asyncio.StreamWriter] = field(default_factory=list)
    _cuts_answer: bool = False
    _passing: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self) -> None:
        """Resets every connection: what is on its way in either direction is lost."""
        self.cuts += 1
        for writer in self._open:
            raw = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._open.clear()

    def hold(self) -> None:
        """From now on nothing passes, in either direction, and nothing is closed."""
        self._passing.clear()

    def let_pass(self) -> None:
        self._passing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.delay)
        host, port = self.upstream.split(":")
        try:
            up_reader, up_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        self._open += [writer, up_writer]
        self.connections += 1
        with contextlib.suppress(OSError):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump(reader, up_writer, counted=True))
                tasks.create_task(self._pump(up_reader, writer, counted=False))
        self.connections -= 1

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                await self._passing.wait()
                if counted and self.cut_answer_to and self.cut_answer_to in chunk:
                    self.cut_answer_to, self._cuts_answer = b"", True
                elif self._cuts_answer and not counted:
                    self._cuts_answer = False
                    self.cut()
                    return
                if counted and self.cut_after is not None:
                    self.cut_after -= len(chunk)
                    if self.cut_after < 0:
                        writer.write(chunk[: len(chunk) + self.cut_after])
                        await writer.drain()
                        self.cut_after = None
                        self.cut()
                        return
                writer.write(chunk)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def cutting_proxy(upstream: str) -> AsyncIterator[CuttingProxy]:
    """A proxy before ``host:port``."""
    proxy = CuttingProxy(upstream)
    proxy.let_pass()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        async with server:
            yield proxy
    finally:
        proxy.let_pass()
        proxy.cut()
