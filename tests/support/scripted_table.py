"""A table of the scripted cluster with two columns, a client whose pauses take no time, and its rows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate import aio
from headgate.system import System
from headgate_proto.api.v1 import errors_pb2 as err
from support.processes import READY_S
from support.scripted_knobs import Row
from support.scripted_service import Cluster

_COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "note": pa.string()}
SCHEMA = pa.schema(_COLUMNS)


@dataclass
class NoPauses:
    """Backoff takes no time; the watch over silent streams looks when told to. Draws are the same each time."""

    drawn: float = 0.0
    pauses: list[float] = field(default_factory=list)
    look: asyncio.Event = field(default_factory=asyncio.Event)
    looks: int = 0

    async def sleep(self, seconds: float) -> None:
        if seconds == 3.0:
            await self.look.wait()
            self.looks += 1
            await asyncio.sleep(0.05)
        else:
            self.pauses.append(seconds)
            await asyncio.sleep(0)

    def random(self) -> float:
        return self.drawn


@contextlib.asynccontextmanager
async def table_of(cluster: Cluster, world: NoPauses | None = None, **options: Any) -> AsyncIterator[aio.Table]:
    world = world or NoPauses()
    async with aio.connect(cluster.coordinator, system=System(world, world), **{"timeout": READY_S, **options}) as hg:
        yield await hg.create_table("t", SCHEMA, key="id", exist_ok=True)


async def give_up_silent_writer(cluster: Cluster, world: NoPauses, others: list[str]) -> None:
    """The watch over silent streams looks more often than a channel gets to open. Nobody opens one, until the cluster gives the
    writer up and lists ``others`` alone.
    """
    world.look.set()
    while world.looks < 30:
        await asyncio.sleep(0.01)
    assert len(cluster.opens) == 1
    cluster.listed = others


def rows(start: int, stop: int) -> list[Row]:
    return [{"id": number, "note": "n"} for number in range(start, stop)]


def ids(cluster: Cluster) -> list[int]:
    return [row["id"] for row in cluster.tables["t"].rows]


def refuse_id(number: int) -> Callable[[Row], "err.Code.ValueType | None"]:
    return lambda row: err.CODE_NULL_KEY if row["id"] == number else None
