"""What a writer does with a caller that is refused too often: its streams wait, and those of others do not."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_proto.api.v1.ingest_pb2_grpc import IngestServiceStub
from headgate_runtime.tarpit import LONGEST_WAIT_S
from headgate_runtime.turns import Turns
from headgate_runtime.world import SystemClock, World
from headgate_writer.admission import Admission
from headgate_writer.client_stream import UNREAD_ANSWERS
from headgate_writer.process import door_limits
from support.arrow_batches import batch
from support.producer import Producer
from support.running_writer import TABLE, Cluster, cluster
from support.tables import rows

BROKEN = ingest_pb2.Batch(offset=1, schema=b"no schema", rows=b"none")
T = TypeVar("T")
OPEN_S = 2.0
"""So long a caller waits that opens too many streams."""
WIDE = pa.record_batch({f"c{number}": [1] for number in range(1_500)})


class Holding(SystemClock):
    """Who waits because of a refusal, or to open a stream, waits for ``over``; ``waiting`` counts them."""

    def __init__(self) -> None:
        self.waiting = asyncio.Semaphore(0)
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds in (LONGEST_WAIT_S, OPEN_S):
            self.waiting.release()
            await self.over.wait()
        else:
            await super().sleep(seconds)


@contextlib.asynccontextmanager
async def holding(folder: Path, **settings: Any) -> AsyncIterator[tuple[Cluster, Holding]]:
    """A writer at which no refusal is free."""
    clock = Holding()
    world = dataclasses.replace(World.real(), clock=clock)
    async with cluster(folder, world=world, refusals=0.001, access_reload=60.0, **settings) as made:
        yield made, clock
        clock.over.set()


async def waits(clock: Holding, answer: "asyncio.Future[Any]") -> None:
    """Until somebody waits for a refusal; fails when the answer comes instead."""
    waiting = asyncio.ensure_future(clock.waiting.acquire())
    await asyncio.wait({answer, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert waiting.done()
    assert not answer.done()


async def at_once(clock: Holding, answer: Coroutine[Any, Any, T]) -> T:
    """The answer; fails when somebody waits for a refusal instead."""
    answering, waiting = asyncio.ensure_future(answer), asyncio.ensure_future(clock.waiting.acquire())
    await asyncio.wait({answering, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert not waiting.done()
    waiting.cancel()
    return await answering


@contextlib.asynccontextmanager
async def stranger(made: Cluster) -> AsyncIterator[Producer]:
    """A client of a connection of its own: without tokens, another caller."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(made.writers[0].address, options=options) as channel:
        yield Producer(IngestServiceStub(channel).Append())


async def test_a_stream_is_not_read_on_until_its_refused_batch_is_paid_for_and_others_are(tmp_path: Path) -> None:
    async with holding(tmp_path) as (made, clock), stranger(made) as other:
        channel = await made.channel()
        await channel.say(batch=BROKEN)
        assert (await channel.refused()).error.code == errors_pb2.CODE_CORRUPT_BATCH
        await channel.append(rows(("a", 1, "")), after=0)
        acked = asyncio.ensure_future(channel.acked(received=1))
        await waits(clock, acked)
        await other.open(TABLE, "other")
        await made.owned.grant(made.links[0], hold=2)
        await other.opened()
        await other.append(rows(("b", 1, "")))
        await other.acked(received=1)
        assert not acked.done()
        clock.over.set()
        await acked


async def test_a_client_that_does_not_read_its_refusals_is_not_read_and_goes_on_when_it_does(tmp_path: Path) -> None:
    small_window = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16 << 10)]
    async with cluster(tmp_path) as made, grpc.aio.insecure_channel(made.writers[0].address, options=small_window) as connection:
        channel = Producer(IngestServiceStub(connection).Append())
        await channel.open(TABLE)
        await made.owned.grant(made.links[0])
        await channel.opened()
        writer = made.writers[0].tables.writer_of(TABLE)
        assert writer is not None
        (hold,) = writer._holds.values()

        async def flood() -> None:
            for _ in range(10_000):
                await channel.say(skip=ingest_pb2.Skip(after=5, offset=9))

        flooding = asyncio.ensure_future(flood())
        while hold.untaken <= UNREAD_ANSWERS:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        assert hold.untaken == UNREAD_ANSWERS + 1
        assert not flooding.done()
        for _ in range(10_000):
            assert (await channel.refused()).error.code == errors_pb2.CODE_OFFSET_GAP
        await flooding


async def test_a_refused_open_is_answered_when_it_is_its_turn(tmp_path: Path) -> None:
    async with holding(tmp_path) as (made, clock):
        producer = made.producer()
        await producer.say(flush=ingest_pb2.Flush())
        ended = asyncio.ensure_future(producer.ended())
        await waits(clock, ended)
        clock.over.set()
        assert await ended == errors_pb2.CODE_INVALID_ARGUMENT


async def test_an_open_that_meets_a_cluster_in_trouble_is_answered_at_once(tmp_path: Path) -> None:
    async with holding(tmp_path) as (made, clock):
        made.writers[0].tables.move_clients()
        producer = made.producer()
        await producer.open(TABLE)
        assert await at_once(clock, producer.ended()) == errors_pb2.CODE_MOVED


async def test_a_message_that_cannot_be_read_ends_its_stream_when_it_is_its_turn(tmp_path: Path) -> None:
    async with holding(tmp_path) as (made, clock):
        channel = await made.channel()
        await channel.say(skip=ingest_pb2.Skip(offset=2**63))
        ended = asyncio.ensure_future(channel.ended())
        await waits(clock, ended)
        clock.over.set()
        assert await ended == errors_pb2.CODE_INVALID_ARGUMENT


async def test_a_large_schema_of_a_caller_that_was_refused_waits_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    schema = Admission.schema

    def noted(admission: Admission, message: bytes) -> pa.Schema:
        read.append(len(message))
        return schema(admission, message)

    monkeypatch.setattr(Admission, "schema", noted)
    async with holding(tmp_path) as (made, clock):
        refused, channel = await made.channel("refused"), await made.channel("channel", hold=2)
        await refused.say(batch=BROKEN)
        await refused.refused()
        await clock.waiting.acquire()
        sent = batch(WIDE)
        sent.offset = 1
        await channel.say(batch=sent)
        answer = asyncio.ensure_future(channel.refused())
        await waits(clock, answer)
        assert read == [len(BROKEN.schema)]
        clock.over.set()
        await answer
        assert read == [len(BROKEN.schema), len(sent.schema)]


async def test_a_large_schema_is_read_in_its_callers_turn_and_a_small_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    having, schema, turn = [False], Admission.schema, Turns.turn
    read: list[bool] = []

    @contextlib.asynccontextmanager
    async def noted_turn(turns: Turns, caller: str) -> AsyncIterator[None]:
        async with turn(turns, caller):
            having[0] = True
            yield
            having[0] = False

    def noted(admission: Admission, message: bytes) -> pa.Schema:
        read.append(having[0])
        return schema(admission, message)

    monkeypatch.setattr(Turns, "turn", noted_turn)
    monkeypatch.setattr(Admission, "schema", noted)
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        for number, columns in enumerate((1, 1_500), 1):
            sent = batch(pa.record_batch({f"c{column}": [1] for column in range(columns)}))
            sent.offset = 1
            await channel.say(batch=sent)
            await channel.refused()
            assert read == [False, True][:number]


async def test_who_opens_more_streams_than_there_are_places_waits_unread_and_others_do_not(tmp_path: Path) -> None:
    async with holding(tmp_path, memory_limit=256 << 20) as (made, clock), stranger(made) as other:
        for number in range(places := door_limits(made.writers[0].settings).calls):
            channel = await at_once(clock, made.channel(f"{number}", hold=number + 1))
            await channel.say(close=ingest_pb2.CloseChannel())
            assert not await channel.ended()
        late = made.producer()
        await late.open(TABLE, "late")
        asked = asyncio.ensure_future(made.owned.grant(made.links[0], hold=places + 1))
        await waits(clock, asked)
        await other.open(TABLE, "other")
        assert (await asked).channel == "other"
        clock.over.set()
        assert (await made.owned.grant(made.links[0], hold=places + 2)).channel == "late"
        await late.opened()
