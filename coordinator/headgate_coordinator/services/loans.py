"""Lends a table of this coordinator to a program that works on all of it in its storage, and takes it back."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable

from headgate_coordinator.core.refusals import LENT
from headgate_coordinator.services.operator_errors import answered
from headgate_coordinator.tables.owned_table import OwnedTable
from headgate_coordinator.tables.storage import TableStorage
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_runtime.world import Clock
from headgate_tables.face.owner import Table


async def lend(
    owned: OwnedTable, storage: TableStorage, clock: Clock, draining: asyncio.Event, longest_ms: int
) -> AsyncGenerator[api.LendResponse, None]:
    """Yields once the table is lent. The loan is over when the caller closes this, after ``longest_ms``, and at ``draining``.

    The lease stays with this coordinator, so that no other one takes the table meanwhile; the next owner fences a program
    that still works on it (rule F1). Raises RpcError.
    """
    loop, lent, returned = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def stand_back(table: Table) -> object:
        for instant in list(table.plans):  # they may be of file groups that leave the table
            table.cancel_plan(instant)
        loop.call_soon_threadsafe(lent.set)
        returned.wait()
        storage.note_change(table.name)
        return None

    over = asyncio.ensure_future(owned.call_table_alone(LENT, stand_back))
    try:
        await _first_of(over, lent.wait(), draining.wait())
        if lent.is_set() and not draining.is_set():
            yield api.LendResponse(url=owned.target.url, epoch=owned.target.epoch)
            await _first_of(over, clock.sleep(longest_ms / 1000), draining.wait())
    finally:
        returned.set()
    await answered(over)


async def _first_of(over: asyncio.Future[object], *others: Awaitable[object]) -> None:
    """Returns when one of them is done, and cancels the ``others``."""
    waiting = [asyncio.ensure_future(each) for each in others]
    try:
        await asyncio.wait([over, *waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
