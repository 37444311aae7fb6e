"""TLS in front of a server that listens on a socket and knows no TLS itself."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.certificates import Certificate


@asynccontextmanager
async def tls_front(socket: Path, shows: Certificate, *, asks_for: Path | None = None) -> AsyncIterator[int]:
    """The port of 127.0.0.1 where it serves. ``asks_for``: the authority of the certificates that clients have to show."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shows.cert, shows.key)
    if asks_for is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(asks_for)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(str(socket))
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(reader, up_writer))
            both.create_task(_pump(up_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
