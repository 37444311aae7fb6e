"""A table with an owner and a bucket side of it: instants are announced, files are real, checkpoints are committed and read
back."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.world import World
from headgate_tables import hudi
from headgate_tables.commitlog.records import DataFile
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.transaction import Transaction
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import Buffers
from headgate_tables.system import SystemIds
from headgate_writer.attached import AttachedTable, Member, Membership
from headgate_writer.bucket_side import BucketSide
from headgate_writer.buffers import MemoryBudget

_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "note": pa.string()}
SCHEMA = pa.schema(_COLUMNS)
ME = "0" * 32
OTHER = "1" * 32


class WatchedStore(LocalStore):
    """A real local store. ``fails``: how staging ends, if not well; ``gate``: staging waits until it is set."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), SystemIds())
        self.fails: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def stage(self, files: Sequence[tuple[str, Buffers]]) -> None:
        self.gate.wait()
        if self.fails is not None:
            raise self.fails
        super().stage(files)


class OwnedTable:
    """The owner's side."""

    def __init__(self, tmp_path: Path, *, ordering: str | None = "ts", buckets: int = 2) -> None:
        self.root = tmp_path / "table"
        self.table = hudi.create_table(
            f"file://{self.root}", SCHEMA, record_key="id", partition_by=["part"], ordering=ordering, buckets=buckets
        )
        self.epoch = self.table.own()
        self.store = WatchedStore(self.root)

    @property
    def definition(self) -> Definition:
        definition = self.table.definition
        assert definition is not None
        return definition

    def attached(self) -> AttachedTable:
        return AttachedTable("t", self.epoch, 1, self.table.url, self.definition, self.store)

    def begin(self) -> Transaction:
        """A checkpoint's transaction; its instant is announced."""
        transaction = self.table.transaction()
        transaction.announce()
        return transaction

    def commit(self, transaction: Transaction, files: Sequence[wire.FileStatus]) -> None:
        transaction.add([_status(file) for file in files])
        transaction.commit()

    def notes(self) -> dict[str, str]:
        """What readers see: id to note."""
        return {row["id"]: row["note"] for row in self.table.scan().to_table().to_pylist()}

    def logged(self, instant: str, file: wire.FileStatus) -> list[Any]:
        """A staged file block by block, as it will take effect: (id, note) of rows, keys of deletes."""
        found: list[Any] = []
        for block in read_log_file(self.store.get(file.stage), file.stage, lambda committed: committed == instant):
            if isinstance(block, RowsBlock):
                found.append([(row["id"], row["note"]) for row in block.read().to_pylist()])
            elif isinstance(block, DeleteBlock):
                found.append(block.rows.keys.to_pylist())
        return found


def _status(file: wire.FileStatus) -> WriteStatus:
    stat = WriteStat(file.file_id, file.partition, file.name, file.size, file.rows, file.deletes, file.log_version)
    return WriteStatus(stat, DataFile(stat.path, file.size, file.sha256, file.stage))


async def settled() -> None:
    """Everything that is due on the event loop has happened."""
    for _ in range(20):
        await asyncio.sleep(0)


def membership(checkpoint: int, *processes: str, key_groups: int = 128, files: int = 0, nbytes: int = 0) -> Membership:
    """All key groups belong to the first. ``files``, ``nbytes``: what the checkpoint may add to a slice."""
    members = tuple(Member(process, f"{process[:4]}:1") for process in processes)
    return Membership(checkpoint, members, np.zeros(key_groups, np.uint16), "auto", files, nbytes)


@dataclass(eq=False)
class Heard:
    """What a bucket side said."""

    asked: list[int] = field(default_factory=list)
    flushed: dict[int, wire.Flushed] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    full: list[int] = field(default_factory=list)
    checkpoints_asked: int = 0
    progress: list[int] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    def report(self, message: wire.AskInstant | wire.AskCheckpoint | wire.CheckpointFull | wire.Progress | wire.Flushed) -> None:
        if isinstance(message, wire.CheckpointFull):
            assert message.checkpoint not in self.full, "a checkpoint is said to be full once"
            self.full.append(message.checkpoint)
        elif isinstance(message, wire.Progress):
            self.progress.append(message.checkpoint)
        elif isinstance(message, wire.AskCheckpoint):
            self.checkpoints_asked += 1
        elif isinstance(message, wire.Flushed):
            assert message.checkpoint not in self.flushed, "a checkpoint is flushed once"
            self.flushed[message.checkpoint] = message
        else:
            assert message.checkpoint not in self.asked, "an instant is asked for once"
            self.asked.append(message.checkpoint)
        self._more.set()

    def break_(self, why: str, own: bool) -> None:
        self.broken.append(why)
        self.own.append(own)
        self._more.set()

    def reached(self, step: str) -> None:
        self.steps.append(step)
        self._more.set()

    async def until(self, step: str, times: int = 1) -> None:
        while self.steps.count(step) < times:
            await self._wait()

    async def until_flushed(self, checkpoint: int) -> wire.Flushed:
        while checkpoint not in self.flushed:
            assert not self.broken, self.broken
            await self._wait()
        return self.flushed[checkpoint]

    async def until_broken(self) -> str:
        while not self.broken:
            await self._wait()
        return self.broken[0]

    async def _wait(self) -> None:
        self._more.clear()
        await self._more.wait()


@asynccontextmanager
async def bucket_side(
    attached: AttachedTable, budget: MemoryBudget | None = None, process: str = ME
) -> AsyncIterator[tuple[BucketSide, Heard]]:
    """Running until the block ends and the side is closed, a flush that is under way included; then every byte of its own budget
    must have been given back.
    """
    shared, budget = budget, budget or MemoryBudget(1 << 30, 1 << 30)
    heard = Heard()
    real = World.real()
    world = World(real.clock, real.ids, real.host, real.pid, heard.reached)
    with ThreadPoolExecutor(1) as executor:
        side = BucketSide(attached, process, budget, world, executor, heard.report, heard.break_)
        async with asyncio.TaskGroup() as group:
            group.create_task(side.run())
            try:
                yield side, heard
            finally:
                side.close()
    assert shared or budget.used == 0
