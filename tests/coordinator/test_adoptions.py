"""A request to adopt a table that is not served is answered, however the try to open the table ends."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headgate_coordinator.settings import CoordinatorSettings
from headgate_coordinator.tables.adoptions import PendingAdoptions
from headgate_coordinator.tables.guarded_clock import GuardedClock
from headgate_coordinator.tables.storage import TableStorage
from headgate_runtime.world import World
from headgate_tables.errors import ReopenTable, StoreUnavailableError
from headgate_tables.system import System


def adopt(_table: object) -> None:
    raise AssertionError("the table was not opened")


@pytest.mark.parametrize("error", [StoreUnavailableError("busy", fix="Wait."), OSError("too many open files"), MemoryError()])
async def test_a_table_that_cannot_be_opened_answers_the_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    def fails(*_args: Any, **_options: Any) -> None:
        raise error

    monkeypatch.setattr("headgate_coordinator.tables.storage.open_table", fails)
    settings, world, system = (
        CoordinatorSettings(store=f"file://{tmp_path}", redis="redis://nowhere"),
        World.real(),
        System.real(),
    )
    storage = TableStorage(settings, world, system, GuardedClock(system.clock, world.clock))
    storage._catalog.add("t", "t")
    adoptions = PendingAdoptions()
    request = asyncio.ensure_future(adoptions.request_adoption("t", adopt))
    await asyncio.sleep(0)
    work = adoptions.take_adoption("t")
    with pytest.raises(type(error)):
        storage.open_owned("t", "here:1", work)
    with pytest.raises(type(error)):
        await asyncio.wait_for(request, 60)


async def test_a_try_that_is_given_up_before_it_begins_answers_the_request() -> None:
    """Another request that comes meanwhile takes neither its place nor its answer."""
    adoptions = PendingAdoptions()
    first = asyncio.ensure_future(adoptions.request_adoption("t", adopt))
    await asyncio.sleep(0)
    assert adoptions.take_adoption("t") is not None
    with pytest.raises(ReopenTable, match="is being adopted"):
        await asyncio.wait_for(adoptions.request_adoption("t", adopt), 60)
    adoptions.refuse_adoption("t")
    with pytest.raises(ReopenTable, match="changing hands"):
        await asyncio.wait_for(first, 60)


async def test_a_request_that_follows_a_refused_one_at_once_is_answered_too() -> None:
    adoptions = PendingAdoptions()
    first = asyncio.ensure_future(adoptions.request_adoption("t", adopt))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(adoptions.request_adoption("t", adopt))  # begins before the first one hears of its end
    adoptions.refuse_adoption("t")
    with pytest.raises(ReopenTable, match="changing hands"):
        await asyncio.wait_for(first, 60)
    adoptions.refuse_adoption("t")
    with pytest.raises(ReopenTable, match="changing hands"):
        await asyncio.wait_for(second, 60)


async def test_the_next_request_is_taken_once_the_first_has_its_answer() -> None:
    adoptions = PendingAdoptions()
    for _ in range(2):
        request = asyncio.ensure_future(adoptions.request_adoption("t", lambda table: "adopted"))
        await asyncio.sleep(0)
        work = adoptions.take_adoption("t")
        assert work is not None
        table: Any = None
        work.run(table)
        assert await asyncio.wait_for(request, 60) == "adopted"
