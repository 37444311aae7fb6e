"""Two ends of an exchange in one process, over real gRPC: what a receiver took, and who may be attached when."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.cluster.v1.exchange_pb2_grpc import add_ExchangeServiceServicer_to_server
from headgate_runtime.grpc_server import Server
from headgate_runtime.settings import ServiceSettings, load_settings
from headgate_tables.arrow import Field
from headgate_tables.hudi.definition import Definition
from headgate_writer.attached import Member, Membership
from headgate_writer.buffers import MemoryBudget
from headgate_writer.exchange import ExchangeService
from headgate_writer.frame_reader import FrameReader
from headgate_writer.known_members import KnownMembers
from headgate_writer.process import door_limits
from headgate_writer.routing import RoutedRows
from headgate_writer.settings import WriterSettings
from headgate_writer.tallies import Tally
from headgate_writer.windows import ReceiveWindow

_FIELDS: list[Field] = [
    pa.field("id", pa.int64(), nullable=False),
    pa.field("part", pa.string()),
    pa.field("ts", pa.int64()),
    pa.field("note", pa.string(), nullable=False),  # a delete has null here all the same
]
TABLE = Definition("t", pa.schema(_FIELDS), ("id",), ("part",), "ts", 4, False, True, uuid.UUID(int=1))
SETTINGS = ServiceSettings()
_DOOR = door_limits(load_settings(WriterSettings, ["--coordinator", "127.0.0.1:1"], prog="writer", about="A writer."))


def members_of(*checkpoints: int, process: str = "receiver", sender: str = "sender") -> KnownMembers:
    """What ``process`` knows of these checkpoints: it and ``sender`` have a part in them."""
    known = KnownMembers(process)
    for checkpoint in checkpoints:
        known.add_membership(membership(checkpoint, process, sender))
    return known


def membership(checkpoint: int, *processes: str) -> Membership:
    """All key groups belong to the first."""
    return Membership(checkpoint, tuple(Member(each, f"{each}:1") for each in processes), np.zeros(128, np.uint16), "auto")


@dataclass(eq=False)
class Taken:
    """A bucket side that writes down what it gets: ``log`` has the ids of rows and (barrier, sender)."""

    log: list[object] = field(default_factory=list)
    received: dict[str, ReceiveWindow] = field(default_factory=dict)
    frames: FrameReader = field(default_factory=lambda: FrameReader(TABLE))
    members: KnownMembers = field(default_factory=lambda: members_of(1, 2, 7))
    tallies: dict[str, Tally] = field(default_factory=dict)
    over: bool = False
    why_broken: str = ""
    own: bool = False
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    def add_rows(self, checkpoint: int, rows: RoutedRows, sender: str) -> None:
        self.log += [(checkpoint, key) for key in rows.rows["id"].to_pylist()]
        self.tallies.setdefault(sender, Tally()).add(rows.rows.num_rows, rows.checksum)
        self._grown.set()

    def add_barrier(self, checkpoint: int, sender: str) -> None:
        self.log.append(("barrier", checkpoint, sender))
        self._grown.set()

    def report_broken(self, why: str, *, own: bool = False) -> None:
        self.over, self.why_broken, self.own = True, why, own

    async def until(self, last: object) -> None:
        """Returns once that is the last that came."""
        while not self.log or self.log[-1] != last:
            self._grown.clear()
            await self._grown.wait()


class Attached:
    """What a process has attached; tests say when. ``awaited``: a stream waits for the next attachment."""

    def __init__(self) -> None:
        self._current: dict[str, tuple[int, int, Taken]] = {}
        self._changed = asyncio.Event()
        self.awaited = asyncio.Event()

    def attach(self, table: str, epoch: int, generation: int) -> Taken:
        side = Taken()
        self._current[table] = (epoch, generation, side)
        self.awaited.clear()
        self._changed.set()
        self._changed = asyncio.Event()
        return side

    def current_side(self, table: str) -> tuple[int, int, Taken] | None:
        return self._current.get(table)

    async def wait_for_change(self, table: str) -> None:
        self.awaited.set()
        await self._changed.wait()


class Watched(ExchangeService):
    """Ends every stream at once while it is not ``willing``."""

    willing = True

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._streams = self._ended = 0
        self._begun = asyncio.Event()
        self._all_ended = asyncio.Event()

    async def until_streams(self, wanted: int) -> None:
        """Returns when so many streams have begun."""
        while self._streams < wanted:
            self._begun.clear()
            await self._begun.wait()

    async def until_all_ended(self) -> None:
        """Returns when no stream is open. Some has to have begun."""
        await self._all_ended.wait()

    async def Exchange(self, request_iterator: AsyncIterator[wire.ExchangeRequest], context: Any) -> None:  # type: ignore[override]
        self._streams += 1
        self._begun.set()
        self._all_ended.clear()
        try:
            if self.willing:
                await super().Exchange(request_iterator, context)
        finally:
            self._ended += 1
            if self._ended == self._streams:
                self._all_ended.set()


@dataclass
class Receiving:
    """A served exchange."""

    address: str
    attached: Attached
    budget: MemoryBudget
    service: Watched


@asynccontextmanager
async def receiving(process: str, budget: MemoryBudget | None = None) -> AsyncIterator[Receiving]:
    """A writer process that receives, until the block ends."""
    budget = budget or MemoryBudget(1 << 30, 1 << 30)
    attached = Attached()
    with ThreadPoolExecutor(1) as executor:
        server = Server(SETTINGS, limits=_DOOR)
        service = Watched(attached, process, budget, executor, wire.ExchangeRequest.FromString)
        add_ExchangeServiceServicer_to_server(service, server.grpc)
        address = await server.start()
        try:
            yield Receiving(address, attached, budget, service)
        finally:
            await server.stop(0)
