"""Channels whose writer leaves: where the last rows go that are under way to it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import grpc
import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.journal import Attempt, History
from support.planted import ALL_ROWS
from support.producer import Producer, producers
from support.producers import create_table
from support.workload import Workload

pytestmark = pytest.mark.slow

PATIENT = ["--checkpoint-interval", "1h", "--checkpoint-min-interval", "100ms", "--writer-timeout", "20s"]
"""Checkpoints come when they are asked for, and a busy machine loses no writer."""


async def test_what_reaches_a_writer_behind_the_end_of_its_channel_is_not_taken_twice(tmp_path: Path) -> None:
    """Rule CH3. Channels of which all was committed send on, one after the other, while their writer is told to leave."""
    options = {"coordinator": PATIENT}
    workload = Workload(deletes=False)
    names = [f"client-{number}" for number in range(64)]
    with Cluster(tmp_path / "cluster", options=options, plant=ALL_ROWS) as cluster:
        url = create_table(cluster.address, "t", workload, buckets=2)
        async with producers(cluster.address_of("writer-1")) as one, producers(cluster.address_of("writer-2")) as other:
            clients = [await opened(one, name) for name in names]
            for client, name in zip(clients, names, strict=True):
                await client.append(numbers(workload, name, 1, 10, 1))
                await client.say(flush=ingest_pb2.Flush())
            for client in clients:
                await client.acked(queryable=10)
            (await opened(other, "both take part now")).vanish()
            async with asyncio.TaskGroup() as group:
                moving = []
                for number, (client, name) in enumerate(zip(clients, names, strict=True)):
                    if number == len(names) // 3:
                        drained = group.create_task(asyncio.to_thread(cluster.drain, "writer-1"))
                    with suppress(grpc.aio.AioRpcError):  # the stream has ended already
                        await client.append(numbers(workload, name, 11, 20, 1))
                    moving.append(group.create_task(moved(client, name, other, workload)))
            assert drained.result() == 0
        histories = [
            History(name, [Attempt(1, 0, 20), Attempt(2, move.result(), 20)], 20)
            for name, move in zip(names, moving, strict=True)
        ]
        assert_exactly_once(url, histories, workload, drop_beaten=False)


async def moved(client: Producer, name: str, elsewhere: Callable[[], Producer], workload: Workload) -> int:
    """When it is told to go: opens elsewhere and sends again what is not committed; returns what was."""
    with suppress(grpc.aio.AioRpcError):  # means the same
        assert await client.ended() == errors_pb2.CODE_MOVED
    again = await opened(elsewhere, name, incarnation=1)
    committed = again.offset
    if committed < 20:
        await again.append(numbers(workload, name, 11, 20, 2))
    await again.say(close=ingest_pb2.CloseChannel())
    assert await again.ended() == errors_pb2.CODE_UNSPECIFIED
    return committed


async def opened(connect: Callable[[], Producer], channel: str, incarnation: int = 0) -> Producer:
    """Of table t, as soon as the writer takes it; its offset is what was committed."""
    while True:
        client = connect()
        await client.open("t", channel, incarnation)
        answer = await client.answer()
        if answer.HasField("opened"):
            client.offset = answer.opened.committed_offset
            return client
        assert answer.ended.error.action in (errors_pb2.ACTION_RETRY, errors_pb2.ACTION_RESUME), answer
        await asyncio.sleep(0.02)


def numbers(workload: Workload, producer: str, first: int, last: int, attempt: int) -> pa.Table:
    """Upserts."""
    return workload.rows(producer, first, last, attempt).drop_columns("op")
