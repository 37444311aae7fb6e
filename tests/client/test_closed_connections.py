"""What calls say when their connection is closed under them, was closed before, or was never entered: no other error, no hang."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import headgate
from headgate import aio
from headgate.loop_thread import LoopThread
from headgate.system import System
from support.processes import READY_S
from support.scripted_service import Cluster
from support.scripted_table import NoPauses, table_of


class LongPause(NoPauses):
    """The first pause between two attempts never ends."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()

    async def sleep(self, seconds: float) -> None:
        self.has_begun.set()
        await asyncio.Event().wait()


def test_a_call_that_waits_for_a_server_says_that_its_connection_was_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor() as threads:
        hg = headgate.connect(f"127.0.0.1:{silent.getsockname()[1]}")
        asked = threads.submit(hg.status)
        connection, _ = silent.accept()
        hg.close()
        connection.close()
        with pytest.raises(headgate.ClosedError):
            asked.result()


def test_a_call_that_pauses_between_attempts_says_that_its_connection_was_closed() -> None:
    world = LongPause()
    with ThreadPoolExecutor() as threads:
        hg = headgate.connect("127.0.0.1:1", wait=READY_S, system=System(world, world))
        asked = threads.submit(hg.status)
        world.has_begun.wait()
        hg.close()
        with pytest.raises(headgate.ClosedError):
            asked.result()


class ClosingLoop:
    """A loop whose connection another thread closes when a call has begun, just before the loop gets it."""

    def __init__(self, thread: LoopThread[None]) -> None:
        self._loop = thread._loop
        self._closer = threading.Thread(target=thread.close)

    def call_soon_threadsafe(self, call: Callable[[], object]) -> None:
        self._closer.start()
        self._closer.join(0.2)  # so long it waits for the call, if it does
        self._loop.call_soon_threadsafe(call)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loop, name)


def test_a_call_that_begins_while_the_connection_closes_ends() -> None:
    @contextlib.asynccontextmanager
    async def nothing() -> AsyncIterator[None]:
        yield

    thread = LoopThread(nothing)
    thread._loop = ClosingLoop(thread)  # type: ignore[assignment]
    with pytest.raises(headgate.ClosedError):
        thread.run(asyncio.Event().wait())


async def test_an_awaited_call_says_that_its_connection_was_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with aio.connect(f"127.0.0.1:{silent.getsockname()[1]}") as hg:
            asked = asyncio.create_task(hg.status())
            connection, _ = await asyncio.to_thread(silent.accept)
        connection.close()
        with pytest.raises(headgate.ClosedError):
            await asked


async def test_after_the_block_nothing_is_connected_anew(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        hg = table.headgate
    for call in (hg.status, table.channel("c").open, hg.__aenter__):
        with pytest.raises(headgate.ClosedError):
            await call()
    assert not hg.transport._connections


async def test_a_channel_that_is_opened_while_the_connection_closes_is_refused(cluster: Cluster) -> None:
    async with asyncio.timeout(30):
        async with table_of(cluster) as table:
            await table.channel("c").open()
            late = asyncio.create_task(table.channel("d").open())
        with pytest.raises(headgate.ClosedError):
            await late


async def test_a_channel_needs_the_block_of_its_connection(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        info = table.info
    hg = aio.connect(cluster.coordinator)
    with pytest.raises(headgate.InvalidArgumentError, match=r"async with headgate\.aio\.connect"):
        await aio.Table(hg, info).channel("c").open()
