"""Requests at full speed that are refused: how long the event loop stands, what another principal notices, what memory stays."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import quantiles
from typing import Any, Final, TypeAlias

import grpc
import psutil
import pyarrow as pa

import headgate.aio
from bench.attacks.attacked import attacked_cluster
from bench.attacks.flood import FLOODS, SECONDS, TABLE
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder
from headgate_proto.api.v1 import ingest_pb2, tables_pb2
from headgate_proto.api.v1.ingest_pb2_grpc import IngestServiceStub
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceStub
from support.arrow_batches import batch
from support.cluster import Cluster

SECTION: Final = "requests"
DELAY, TIMES, RETURNED = "ms, longest delay of the loop", "times, p99 of another principal", "s until its memory is back"
_PEAK, _P99 = "MiB more, at the end", "ms, p99 of another principal"
_MIB: Final = 1 << 20
_KEPT: Final = 32 * _MIB
"""An allocator keeps some; so much more than before counts as returned."""
_LONGEST_S: Final = 60.0
_VICTIM: Final = (("authorization", "Bearer bob-token"),)
_COLUMNS: Final[dict[str, pa.DataType]] = {"id": pa.string(), "n": pa.int64()}
_ROW: Final = pa.RecordBatch.from_pydict({"id": ["a"], "n": [1]}, pa.schema(_COLUMNS))

Call: TypeAlias = Callable[[], Awaitable[None]]


def measure(figures: Figures, match: str, *, quick: bool) -> None:
    """One round: each flood whose name contains ``match``, against a fresh cluster."""
    for name in [each for each in FLOODS if match in each]:
        with scratch_folder("attacks") as folder, attacked_cluster(folder) as cluster:
            asyncio.run(_measure(figures, name, cluster, SECONDS / (4 if quick else 1)))


async def _measure(figures: Figures, name: str, cluster: Cluster, seconds: float) -> None:
    part, _ = FLOODS[name]
    address = cluster.address_of(part)
    async with headgate.aio.connect(cluster.address, token="bob-token") as hg:
        for table in (TABLE, "victim"):
            await hg.create_table(table, _ROW.schema, key="id", buckets=2)
    process = psutil.Process(cluster.part(part).pid)
    flooding = partial(run_child, "bench.attacks.flood:flood", name=name, address=address, seconds=seconds)
    async with grpc.aio.insecure_channel(address) as channel:
        call = await _victim(channel, part)
        loop = partial(_answer_of_the_loop, channel)
        quiet, _ = await _meanwhile(partial(time.sleep, seconds), call, loop)
        before = process.memory_info().rss
        harmed, delays = await _meanwhile(flooding, call, loop)
        kept = process.memory_info().rss - before
        ended = time.monotonic()
        while process.memory_info().rss > before + _KEPT and time.monotonic() < ended + _LONGEST_S:
            await asyncio.sleep(0.05)
        figures.add(SECTION, name, RETURNED, OURS, time.monotonic() - ended)
    figures.add(SECTION, name, _PEAK, OURS, kept / _MIB)
    figures.add(SECTION, name, DELAY, OURS, 1_000 * max(delays))
    figures.add(SECTION, name, _P99, OURS, 1_000 * _p99(harmed))
    figures.add(SECTION, name, TIMES, OURS, _p99(harmed) / _p99(quiet))


async def _victim(channel: grpc.aio.Channel, part: str) -> Call:
    """What another principal does: a row until it is acknowledged as received, or the list of tables."""
    if part == "coordinator-1":
        tables = TableServiceStub(channel)
        return lambda: _awaited(tables.ListTables(tables_pb2.ListTablesRequest(), metadata=_VICTIM))
    stream = IngestServiceStub(channel).Append(metadata=_VICTIM)
    await stream.write(ingest_pb2.AppendRequest(open=ingest_pb2.OpenChannel(table="victim", channel="v")))
    await stream.read()
    sent = batch(_ROW)

    async def append() -> None:
        sent.after, sent.offset = sent.offset, sent.offset + 1
        await stream.write(ingest_pb2.AppendRequest(batch=sent))
        received = 0
        while received < sent.offset:
            match await stream.read():
                case ingest_pb2.AppendResponse() as answer:
                    received = answer.acks.received
                case _:
                    raise EOFError("the victim's stream has ended")

    return append


async def _awaited(call: Awaitable[Any]) -> None:
    await call


async def _answer_of_the_loop(channel: grpc.aio.Channel) -> None:
    """A method that is not there: the server's loop says so, and nothing else is asked."""
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/headgate.api.v1.TableService/None")
    with contextlib.suppress(grpc.aio.AioRpcError):
        await call(b"")


async def _meanwhile(work: Callable[[], object], *calls: Call) -> list[list[float]]:
    """Seconds of each of the calls, one after the other, while ``work`` runs on a thread."""
    seconds: list[list[float]] = [[] for _ in calls]
    running = asyncio.ensure_future(asyncio.to_thread(work))

    async def repeat(call: Call, into: list[float]) -> None:
        while not running.done() or len(into) < 2:
            begun = time.monotonic()
            await call()
            into.append(time.monotonic() - begun)
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as tasks:
        for call, into in zip(calls, seconds, strict=True):
            tasks.create_task(repeat(call, into))
    await running
    return seconds


def _p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[-1]
