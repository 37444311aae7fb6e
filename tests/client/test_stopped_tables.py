"""A table that takes no rows for a while: a program waits and goes on, or is told why and what to do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate.encoding import SMALL_BYTES
from headgate.system import System
from headgate_proto.api.v1 import errors_pb2 as err
from support.processes import READY_S
from support.scripted_service import Cluster, error, scripted_cluster

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])
STOPPED = error(err.CODE_OVERLOADED, "200 log files of one slice wait for compaction", retry_after_ms=1000)
LARGE = "n" * SMALL_BYTES


@dataclass
class SteppedPauses:
    """A pause lasts until a test lets it end; ``begun`` is released by each that begins."""

    seconds: list[float] = field(default_factory=list)
    begun: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    ends: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def sleep(self, seconds: float) -> None:
        if seconds == 3.0:
            await asyncio.Event().wait()  # the watch over silent streams
        self.seconds.append(seconds)
        self.begun.release()
        await self.ends.acquire()

    def random(self) -> float:
        return 0.0


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with scripted_cluster() as cluster:
        yield cluster


@contextlib.asynccontextmanager
async def channel_of(cluster: Cluster, pauses: SteppedPauses) -> AsyncIterator[aio.Channel]:
    async with aio.connect(cluster.coordinator, timeout=READY_S, wait=READY_S, system=System(pauses, pauses)) as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        async with table.channel("c") as channel:
            yield channel


def rows(*numbers: int, note: str = "n") -> list[dict[str, object]]:
    return [{"id": number, "note": note} for number in numbers]


def ids(cluster: Cluster) -> list[int]:
    return [row["id"] for row in cluster.tables["t"].rows]


async def test_a_program_that_meets_a_stopped_table_waits_and_goes_on_by_itself_on_the_same_stream(cluster: Cluster) -> None:
    pauses = SteppedPauses()
    async with channel_of(cluster, pauses) as channel:
        await channel.upsert(rows(0, 1))
        await channel.flush()
        cluster.knobs.stopped = STOPPED
        for number in range(2, 8):
            await channel.upsert(rows(number, note=LARGE if number % 2 else "small"))
        for _ in range(3):
            await pauses.begun.acquire()
            assert channel.acks.received == 2
            pauses.ends.release()
        await pauses.begun.acquire()
        cluster.knobs.stopped = None
        pauses.ends.release()
        await channel.flush()
    assert ids(cluster) == list(range(8))
    assert pauses.seconds == [1.0] * 4
    assert len(cluster.opens) == 1


async def test_while_a_table_is_stopped_a_try_costs_one_batch(cluster: Cluster) -> None:
    pauses = SteppedPauses()
    async with channel_of(cluster, pauses) as channel:
        cluster.knobs.stopped = STOPPED
        for number in range(0, 12, 2):  # two rows a call: single ones would share a message
            await channel.upsert([*rows(number, note=LARGE), *rows(number + 1, note=LARGE)])
        await pauses.begun.acquire()
        pauses.ends.release()
        await pauses.begun.acquire()
        before = len(cluster.batches)
        for _ in range(3):
            pauses.ends.release()
            await pauses.begun.acquire()
        assert [batch.offset for batch in cluster.batches[before:]] == [2, 2, 2]
        cluster.knobs.stopped = None
        pauses.ends.release()
    assert ids(cluster) == list(range(12))


async def test_a_wait_that_ends_first_says_why_the_table_takes_no_rows_and_what_to_do(cluster: Cluster) -> None:
    pauses = SteppedPauses()
    async with channel_of(cluster, pauses) as channel:
        cluster.knobs.stopped = STOPPED
        await channel.upsert(rows(0))
        await pauses.begun.acquire()
        with pytest.raises(headgate.NotCommittedError, match="200 log files of one slice wait for compaction") as late:
            await channel.flush(timeout=0.01)
        assert late.value.fix.startswith(STOPPED.fix)
        assert isinstance(late.value.__cause__, headgate.OverloadedError)
        cluster.knobs.stopped = None
        pauses.ends.release()
        await channel.flush()
        cluster.knobs.hold_checkpoints = True
        await channel.upsert(rows(1))
        with pytest.raises(headgate.NotCommittedError) as slow:
            await channel.flush(timeout=0.01)
        assert "log files" not in str(slow.value), "that is over"
        cluster.knobs.hold_checkpoints = False
        await channel.upsert(rows(2))
    assert ids(cluster) == [0, 1, 2]


async def test_a_channel_without_room_says_so_too(cluster: Cluster) -> None:
    pauses = SteppedPauses()
    async with channel_of(cluster, pauses) as channel:
        cluster.knobs.stopped = STOPPED
        channel.runner.channel.state.limit = 3 * SMALL_BYTES
        await channel.upsert(rows(0, note=LARGE))
        await channel.upsert(rows(1, note=LARGE))
        await pauses.begun.acquire()
        with pytest.raises(headgate.NotCommittedError, match=r"no room.*200 log files"):
            await channel.upsert(rows(2, note=LARGE), timeout=0.05)
        cluster.knobs.stopped = None
        pauses.ends.release()
    assert ids(cluster) == [0, 1]
