"""A TCP proxy in front of one server: connections are told apart by the process that makes them, and can be cut and healed."""

import asyncio
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

CutKind = Literal["reset", "stall"]
"""``reset``: connections break and new ones are refused, as when a process is gone. ``stall``: not a byte passes, nothing breaks,
as when a cable is out; after healing what was under way arrives."""

ANYBODY = ""


@dataclass(eq=False)
class _Connection:
    source: str
    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    passing: asyncio.Event = field(default_factory=asyncio.Event)


class Link:
    """``upstream`` may be set later and changed; until then new connections are refused.

    ``source_of(port)`` names the process behind a connection's port on this machine. One thread of its own does the work.
    """

    def __init__(self, source_of: Callable[[int], str]) -> None:
        self.upstream = ("127.0.0.1", 0)
        self._source_of = source_of
        self._cuts: dict[str, CutKind] = {}
        self._open: set[_Connection] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), name="link")
        self._thread.start()

    @property
    def address(self) -> str:
        """host:port to connect to."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self, source: str = ANYBODY, kind: CutKind = "reset") -> None:
        """For connections of this process, or of all; returns when it is done."""
        self._do(self._cut, source, kind)

    def heal(self, source: str = ANYBODY) -> None:
        """Takes the cut of the same ``source`` back."""
        self._do(self._heal, source)

    def close(self) -> None:
        """Breaks what is open. Nothing happens the second time."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
            self._loop.close()

    def _do(self, act: Callable[..., None], *arguments: str) -> None:
        async def there() -> None:
            act(*arguments)

        asyncio.run_coroutine_threadsafe(there(), self._loop).result()

    def _cut(self, source: str, kind: CutKind) -> None:
        self._cuts[source] = kind
        for connection in self._of(source):
            if kind == "stall":
                connection.passing.clear()
            else:
                _reset(connection)

    def _heal(self, source: str) -> None:
        self._cuts.pop(source, None)
        for connection in self._of(source):
            if self._cut_of(connection.source) is None:
                connection.passing.set()

    def _of(self, source: str) -> list[_Connection]:
        return [connection for connection in self._open if source in (ANYBODY, connection.source)]

    def _cut_of(self, source: str) -> CutKind | None:
        return self._cuts.get(ANYBODY) or self._cuts.get(source)

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, sock=self._listener)
        await self._stopped.wait()
        server.close()
        for connection in list(self._open):
            connection.passing.set()
            _reset(connection)
        while self._open:
            await asyncio.sleep(0)
        await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        source = self._source_of(peer[1]) if peer else ANYBODY  # none: it has left again
        cut = self._cut_of(source)
        try:
            if cut == "reset":
                raise ConnectionRefusedError
            if self.upstream[1] == self._listener.getsockname()[1]:
                raise ConnectionRefusedError("a link to itself would never end")
            ahead = await asyncio.open_connection(*self.upstream)
        except OSError:
            _reset_one(writer)
            return
        connection = _Connection(source, (writer, ahead[1]))
        if cut is None:
            connection.passing.set()
        self._open.add(connection)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, ahead[1], connection.passing))
                both.create_task(_pump(ahead[0], writer, connection.passing))
        finally:
            self._open.discard(connection)
            for end in connection.writers:
                end.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passing: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while content := await reader.read(1 << 16):
            await passing.wait()
            writer.write(content)
            await writer.drain()
    with contextlib.suppress(OSError):
        await passing.wait()
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()


def _reset(connection: _Connection) -> None:
    for writer in connection.writers:
        _reset_one(writer)


def _reset_one(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN: the other end sees a broken connection, not an orderly end."""
    with contextlib.suppress(OSError):  # it may be closed already
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def owner_of_port(port: int, processes: Iterator[tuple[str, int]]) -> str:
    """The name of the process (name, pid) that has this local TCP port of 127.0.0.1 as its own end; "" if none has."""
    wanted = f"socket:[{_inode(port)}]"
    for name, pid in processes:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if os.readlink(entry.path) == wanted:
                        return name
    return ""


def _inode(port: int) -> str:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as lines:
            next(lines)
            for line in lines:
                words = line.split()
                if int(words[1].rpartition(":")[2], 16) == port and words[9] != "0":
                    return words[9]
    return ""
