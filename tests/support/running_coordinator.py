"""Coordinators that run in the test's own event loop, and a client of any coordinator."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pyarrow as pa
import pytest

from headgate_coordinator.service import serve
from headgate_coordinator.settings import CoordinatorSettings
from headgate_proto.api.v1 import errors_pb2, maintenance_pb2
from headgate_proto.api.v1 import tables_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceStub
from headgate_runtime.errors import from_call
from headgate_runtime.world import World
from support.coordinator_steps import reported_steps
from support.processes import READY_S
from support.time_limits import ended

_T = TypeVar("_T")

FAST: dict[str, float] = {
    "checkpoint_interval": 0.2,
    "checkpoint_min_interval": 0.01,
    "lease_ttl": 60.0,
    "lease_renewal": 0.2,
    "scan_interval": 0.2,
    "heartbeat_interval": 0.1,
    "writer_timeout": 60.0,
    "checkpoint_timeout": 90.0,
}
"""Settings with which a test does not wait for long, and a busy machine loses neither a writer nor a lease; seconds."""

T = "flights"
"""The table that the fixture ``coordinator`` has made and owns."""
OPTIONS: dict[str, Any] = {"partition_by": ["part"], "ordering": "ts", "buckets": 2}
"""Of this table, which has the columns ``support.tables.SCHEMA``."""


class Client:
    """``address``: host:port of a coordinator. ``tables``: its TableService; ``channel``: for others."""

    def __init__(self, address: str, channel: grpc.aio.Channel) -> None:
        self.address = address
        self.channel = channel
        self.tables: Any = TableServiceStub(channel)

    async def create(self, name: str, schema: pa.Schema, **options: Any) -> api.TableDescription:
        """A table with the record key ``id``, unless the options say otherwise."""
        request = api.CreateTableRequest(name=name, schema=schema.serialize().to_pybytes(), **{"record_key": ["id"], **options})
        answer = await self.tables.CreateTable(request)
        table: api.TableDescription = answer.table
        return table

    async def status(self, table: str) -> api.TableStatus:
        """Of one table."""
        answer = await self.tables.Status(api.StatusRequest(table=table))
        found: api.TableStatus = answer.tables[0]
        return found

    async def until(self, table: str, **wanted: Any) -> api.TableStatus:
        """Waits until the table's status has these values, all in one answer; a function says whether a value will do."""
        while True:
            status = await self.status(table)
            values = {name: getattr(status, name) for name in wanted}
            if all(wish(values[name]) if callable(wish) else values[name] == wish for name, wish in wanted.items()):
                return status
            await asyncio.sleep(0.02)


class Running(Client):
    """A coordinator of this process."""

    def __init__(self, address: str, channel: grpc.aio.Channel, draining: asyncio.Event, task: "asyncio.Task[None]") -> None:
        super().__init__(address, channel)
        self.failure_known = False
        self._draining = draining
        self._task = task

    async def drain(self) -> None:
        """As SIGTERM; returns when it has ended."""
        self._draining.set()
        await ended(self._task)
        self._task.result()

    async def failed(self) -> BaseException:
        """Waits until it ends by itself and says with what."""
        await asyncio.wait([self._task])
        error = self._task.exception()
        assert error is not None, "it ended without an error"
        self.failure_known = True
        return error


async def refused(call: Awaitable[Any]) -> errors_pb2.Error:
    """The error with which the call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return from_call(failed.value)


async def persist(call: Callable[[], Awaitable[_T]]) -> _T:
    """Calls again, as the SDK does, after an error that says so: an ownership may just be ending."""
    while True:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if from_call(error).action != errors_pb2.ACTION_RETRY:
                raise
        await asyncio.sleep(0.02)


async def drop(coordinator: Client, uuid: str, *, plan_only: bool = False) -> maintenance_pb2.DropResponse:
    """Drops the table ``T``, if this is its UUID."""
    request = maintenance_pb2.DropRequest(table=T, table_uuid=uuid, plan_only=plan_only)
    answer: maintenance_pb2.DropResponse = await MaintenanceServiceStub(coordinator.channel).Drop(request)
    return answer


@asynccontextmanager
async def client_of(address: str) -> AsyncIterator[Client]:
    """Of a coordinator anywhere."""
    async with asyncio.timeout(READY_S), grpc.aio.insecure_channel(address) as channel:
        yield Client(address, channel)


@asynccontextmanager
async def running_coordinator(
    store: Path | str, redis: str, *, reached: Callable[[str], None] | None = None, **settings: Any
) -> AsyncIterator[Running]:
    """Serves when the block begins and has drained when it ends. ``redis``: host:port. ``reached``: called at each step
    of docs/protocol/crashes.md.

    What it fails with is raised at the end, unless ``Running.failed`` was asked.
    """
    told = CoordinatorSettings(store=str(store), redis=f"redis://{redis}/0", **{**FAST, **settings})
    draining, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    with reported_steps(reached) if reached is not None else nullcontext():
        task = asyncio.ensure_future(serve(told, World.real(), draining, ready.set_result))
        try:
            await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            address = ready.result()
            async with asyncio.timeout(READY_S), grpc.aio.insecure_channel(address) as channel:
                running = Running(address, channel, draining, task)
                yield running
        finally:
            draining.set()
            await ended(task)
    if not running.failure_known:
        task.result()
