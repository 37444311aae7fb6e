"""What scripted services share: a server that runs for a block, and waits that end with the stream."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc

from headgate_runtime.grpc_server import Server
from headgate_runtime.settings import ServiceSettings
from support.processes import READY_S

_T = TypeVar("_T")


class StreamEndedError(Exception):
    """The stream ended while a test waited for a message on it: without this error it would wait for ever."""


@asynccontextmanager
async def served(*register: Callable[[grpc.aio.Server], None]) -> AsyncIterator[str]:
    """Yields the address of a server with these servicers, which stops with the block."""
    server = Server(ServiceSettings())
    for each in register:
        each(server.grpc)
    address = await server.start()
    try:
        yield address
    finally:
        await _stop(server)


async def _stop(server: Server) -> None:
    """Raises TimeoutError when a call does not end, and shows where every task stands. Without it the whole run stops here."""
    stopping = asyncio.ensure_future(server.stop(0))
    _, late = await asyncio.wait([stopping], timeout=READY_S)
    if late:
        for task in asyncio.all_tasks():
            task.print_stack(file=sys.stderr)
        stopping.cancel()
        raise TimeoutError("a call goes on although its server stops")
    stopping.result()


async def before_end(gone: asyncio.Event, message: Coroutine[Any, Any, _T]) -> _T:
    """Returns the message. Raises StreamEndedError when ``gone`` is set and none has come."""
    waiting = asyncio.ensure_future(message)
    ending = asyncio.ensure_future(gone.wait())
    try:
        await asyncio.wait((waiting, ending), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)  # a message that was there before the end counts
        if not waiting.done():
            raise StreamEndedError
        return waiting.result()
    finally:
        waiting.cancel()
        ending.cancel()
