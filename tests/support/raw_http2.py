"""An HTTP/2 client that does to a gRPC server what gRPC's own client does not: messages that never end, streams nobody reads."""

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_UNKNOWN: Final = 0xFA
_ACK: Final = 1
_END_STREAM: Final = 1
_END_HEADERS: Final = 4
_MAX_CONCURRENT_STREAMS, _INITIAL_WINDOW_SIZE = 3, 4
_MOST_A_FRAME: Final = 16 << 10
_DEFAULT_WINDOW: Final = 65_535


class _Kind(IntEnum):
    """Of frames (RFC 9113, 6)."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    WINDOW_UPDATE = 8


@dataclass
class RawStream:
    """One call. ``window``: bytes that the server still takes; ``ended``: it has answered with trailers, or reset the stream."""

    number: int
    window: int
    sent: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class RawConnection:
    """A connection that obeys flow control, as a server closes any other. ``refused``: the server has closed it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._window = _DEFAULT_WINDOW
        self._initial = _DEFAULT_WINDOW
        self._moved = asyncio.Event()
        self._next = 1
        self.streams: dict[int, RawStream] = {}
        self.most_streams: int | None = None
        self.refused = asyncio.Event()
        self.settled = asyncio.Event()
        self._pong = asyncio.Event()

    def open_call(self, path: str, metadata: Sequence[tuple[str, str]] = ()) -> RawStream:
        """Sends the headers of a call of ``path`` ("/package.Service/Method")."""
        pairs = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "a"), ("te", "trailers")]
        pairs += [("content-type", "application/grpc"), *metadata]
        stream = self.streams[self._next] = RawStream(self._next, self._initial)
        self._next += 2
        self._frame(_Kind.HEADERS, _END_HEADERS, stream.number, b"".join(_literal(name, value) for name, value in pairs))
        return stream

    def send(self, stream: RawStream, content: bytes | memoryview, *, last: bool = False) -> int:
        """Sends as much of ``content`` as both windows allow, in one frame at most. Returns how many bytes went out."""
        size = max(0, min(len(content), stream.window, self._window, _MOST_A_FRAME))
        if size or not content:
            self._frame(_Kind.DATA, _END_STREAM if last and size == len(content) else 0, stream.number, content[:size])
        stream.window -= size
        self._window -= size
        stream.sent += size
        return size

    async def send_all(self, stream: RawStream, content: bytes, *, last: bool = False) -> None:
        """Sends all of ``content``, or what the server takes before it ends the stream or the connection."""
        rest = memoryview(content)
        while rest and not (stream.ended.is_set() or self.refused.is_set()):
            self._moved.clear()
            sent = self.send(stream, rest, last=last)
            rest = rest[sent:]
            if sent:
                await self._writer.drain()
            elif rest:
                await self._moved.wait()

    def send_ignored(self, nbytes: int) -> None:
        """Sends a frame of a kind that no server knows, and that it therefore passes over (RFC 9113, 5.5)."""
        self._frame(_UNKNOWN, 0, 0, bytes(nbytes))

    async def ping(self) -> bool:
        """Whether the server answers a ping, and does not close the connection."""
        self._pong.clear()
        self._frame(_Kind.PING, 0, 0, bytes(8))
        waiting = [asyncio.ensure_future(each.wait()) for each in (self._pong, self.refused)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return not self.refused.is_set()

    async def drain(self) -> None:
        """Until the socket has taken what was sent."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def serve(self) -> None:
        """Reads the server's frames until it closes the connection."""
        self._writer.write(_PREFACE)
        self._frame(_Kind.SETTINGS, 0, 0, b"")
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await self._reader.readexactly(9)
                size = int.from_bytes(head[:3], "big")
                content = await self._reader.readexactly(size)
                self._take(head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFF_FFFF, content)
        self.refused.set()
        self._moved.set()

    def _take(self, kind: int, flags: int, number: int, content: bytes) -> None:
        stream = self.streams.get(number)
        match kind:
            case _Kind.SETTINGS if not flags & _ACK:
                self._settings(content)
            case _Kind.PING if not flags & _ACK:
                self._frame(_Kind.PING, _ACK, 0, content)
            case _Kind.PING:
                self._pong.set()
            case _Kind.WINDOW_UPDATE:
                size = int.from_bytes(content, "big")
                if stream is not None:
                    stream.window += size
                elif number == 0:
                    self._window += size
            case _Kind.DATA:
                # All that the server says is taken: what it may send is not what is tried here.
                self._frame(_Kind.WINDOW_UPDATE, 0, 0, struct.pack(">I", max(1, len(content))))
            case _:
                pass
        ends = kind in (_Kind.DATA, _Kind.HEADERS) and flags & _END_STREAM
        if stream is not None and (ends or kind == _Kind.RST_STREAM):
            stream.ended.set()
        self._moved.set()

    def _settings(self, content: bytes) -> None:
        for at in range(0, len(content), 6):
            name, value = struct.unpack_from(">HI", content, at)
            if name == _INITIAL_WINDOW_SIZE:
                for stream in self.streams.values():
                    stream.window += value - self._initial
                self._initial = value
            elif name == _MAX_CONCURRENT_STREAMS:
                self.most_streams = value
        self._frame(_Kind.SETTINGS, _ACK, 0, b"")
        self.settled.set()

    def _frame(self, kind: int, flags: int, number: int, content: bytes | memoryview) -> None:
        if not self._writer.is_closing():
            self._writer.write(struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, number) + content)


def message_start(declared: int) -> bytes:
    """The five bytes that begin a message of ``declared`` bytes in gRPC."""
    return struct.pack(">BI", 0, declared)


@contextlib.asynccontextmanager
async def raw_connection(address: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawConnection]:
    """A connection whose settings the server has sent, or has refused; it is closed at the end of the block."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    made = RawConnection(reader, writer)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(made.serve())
        waiting = [tasks.create_task(each.wait()) for each in (made.settled, made.refused)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield made
        finally:
            for task in (serving, *waiting):
                task.cancel()
            if tls is None:
                writer.close()
            else:  # a server that goes on to send would make an orderly end of TLS an error
                writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def _literal(name: str, value: str) -> bytes:
    """A header without indexing and without Huffman's code (RFC 7541, 6.2.2)."""
    return b"\x00" + _text(name) + _text(value)


def _text(text: str) -> bytes:
    raw = text.encode()
    if len(raw) < 127:
        return bytes((len(raw),)) + raw
    rest, out = len(raw) - 127, b"\x7f"
    while rest >= 128:
        out += bytes((rest % 128 + 128,))
        rest //= 128
    return out + bytes((rest,)) + raw
