"""What calls may cost a server before their handlers run: a real server, and clients that do what gRPC's own do not."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from headgate_proto.api.v1 import errors_pb2, ingest_pb2_grpc, maintenance_pb2, maintenance_pb2_grpc, tables_pb2, tables_pb2_grpc
from headgate_runtime.errors import from_call
from headgate_runtime.limits import RECEIVED_BYTES, WINDOW_BYTES, DoorLimits
from support.door import bearing, describe, failing, serving
from support.processes import READY_S
from support.raw_http2 import RawConnection, RawStream, message_start

LARGE = RECEIVED_BYTES - 64
DESCRIBE = "/headgate.api.v1.TableService/DescribeTable"
CHECK = "/grpc.health.v1.Health/Check"


def begin_large(connection: RawConnection, path: str, name: str, calls: int) -> list[RawStream]:
    """Calls of ``name`` whose request begins, says that it is large, and never ends."""
    begun = [connection.open_call(path, bearing(name)) for _ in range(calls)]
    for call in begun:
        connection.send(call, message_start(LARGE) + bytes(1_000))
    return begun


async def fed(connection: RawConnection, call: RawStream, nbytes: int) -> None:
    """Sends ``nbytes`` more, as far as the server takes them, without an end."""
    await connection.send_all(call, bytes(nbytes))


async def test_all_kinds_of_methods_answer_behind_the_door(tmp_path: Path) -> None:
    async with serving(tmp_path, DoorLimits()) as served, served.client() as channel:
        assert await describe(channel, "alice") == "alice"
        compact = maintenance_pb2_grpc.MaintenanceServiceStub(channel).Compact
        answers = [each async for each in compact(maintenance_pb2.CompactRequest(), metadata=bearing("bob"))]
        assert len(answers) == 2
        stream = ingest_pb2_grpc.IngestServiceStub(channel).Append(metadata=bearing("bob"))
        await stream.initial_metadata()
        await stream.done_writing()
        assert await stream.code() is grpc.StatusCode.OK


async def test_who_holds_the_memory_for_requests_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    """Two requests of alice are read, half of the budget; her others wait unread. Bob's is served meanwhile."""
    limits = DoorLimits(read_bytes=4 * RECEIVED_BYTES, read_seconds=3_600)
    async with serving(tmp_path, limits) as served, served.raw() as connection, served.client() as channel:
        calls = begin_large(connection, DESCRIBE, "alice", 12)
        async with asyncio.TaskGroup() as tasks:
            feeding = [tasks.create_task(fed(connection, call, LARGE - 10_000)) for call in calls]
            done, _ = await asyncio.wait(feeding, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
            while len(done) < 2:
                more, _ = await asyncio.wait(set(feeding) - done, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
                assert more
                done |= more
            for _ in range(10):
                assert await asyncio.wait_for(describe(channel, "bob"), READY_S) == "bob"
            for task in feeding:
                task.cancel()
        read = sorted(call.sent for call in calls)[-2:]
        assert min(read) > LARGE - 20_000
        assert sum(call.sent for call in calls) - sum(read) <= 10 * WINDOW_BYTES


async def test_a_request_that_arrives_too_slowly_is_given_up_and_one_that_waits_too_long_for_it(tmp_path: Path) -> None:
    limits = DoorLimits(read_bytes=2 * RECEIVED_BYTES, read_seconds=0.2)
    async with serving(tmp_path, limits) as served, served.raw() as connection:
        calls = begin_large(connection, DESCRIBE, "alice", 8)
        await asyncio.wait_for(asyncio.gather(*(call.ended.wait() for call in calls)), READY_S)


async def test_a_slow_or_waiting_caller_learns_that_it_may_try_again(tmp_path: Path) -> None:
    """A client of gRPC's own, whose request never comes: it opens the unary method as a stream."""
    limits = DoorLimits(read_bytes=RECEIVED_BYTES, read_seconds=0.2)
    async with serving(tmp_path, limits) as served, served.client() as channel:
        calls: list[Any] = [channel.stream_stream(DESCRIBE)(metadata=bearing("alice")) for _ in range(2)]
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await asyncio.wait_for(call.read(), READY_S)
            assert from_call(failed.value).action == errors_pb2.ACTION_RETRY


async def test_health_answers_while_strangers_hold_all_its_places(tmp_path: Path) -> None:
    """Each unfinished check would be 1 MiB; the oldest ends for the newest, which is there at once and so gets through."""
    limits = DoorLimits(stranger_bytes=2 * RECEIVED_BYTES, stranger_seconds=3_600)
    async with serving(tmp_path, limits) as served, served.raw() as connection, served.client() as channel:
        calls = begin_large(connection, CHECK, "", 120)
        await asyncio.wait_for(asyncio.gather(*(call.ended.wait() for call in calls[:-2])), READY_S)
        assert not any(call.ended.is_set() for call in calls[-2:])
        await asyncio.wait_for(health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()), READY_S)


async def test_a_stream_of_the_health_service_more_ends_the_oldest(tmp_path: Path) -> None:
    async with serving(tmp_path, DoorLimits(watchers=2)) as served, served.client() as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch
        streams: list[Any] = []
        for _ in range(3):
            streams.append(watch(health_pb2.HealthCheckRequest()))
            await streams[-1].read()
        with failing(errors_pb2.CODE_OVERLOADED):
            await asyncio.wait_for(streams[0].read(), READY_S)
        assert not streams[1].done()
        assert not streams[2].done()


async def test_a_request_larger_than_its_method_takes_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, DoorLimits()) as served, served.client() as channel:
        create = tables_pb2_grpc.TableServiceStub(channel).CreateTable
        await create(tables_pb2.CreateTableRequest(schema=bytes(300_000)), metadata=bearing("alice"))
        with failing(errors_pb2.CODE_TOO_LARGE) as failed:
            await create(tables_pb2.CreateTableRequest(schema=bytes(600_000)), metadata=bearing("alice"))
        assert "524,288" in str(failed.value.details())
        with failing(errors_pb2.CODE_TOO_LARGE):
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="x" * 1_100))


@pytest.mark.parametrize("content", [[b"\xff\xff\xff"], []], ids=["no message of the method", "nothing"])
async def test_what_is_no_request_is_an_invalid_argument(content: list[bytes], tmp_path: Path) -> None:
    async with serving(tmp_path, DoorLimits()) as served, served.client() as channel:
        call: Any = channel.stream_stream(DESCRIBE)(iter(content), metadata=bearing("alice"))
        with failing(errors_pb2.CODE_INVALID_ARGUMENT):
            await call.read()


async def test_one_caller_gets_three_quarters_of_the_places_for_calls_and_the_others_all_that_is_left(tmp_path: Path) -> None:
    async with serving(tmp_path, DoorLimits(calls=8)) as served, served.client() as channel:
        stub = ingest_pb2_grpc.IngestServiceStub(channel)
        open_streams: list[Any] = []
        for name, places in (("alice", 6), ("bob", 2)):
            for _ in range(places):
                open_streams.append(stub.Append(metadata=bearing(name)))
                await open_streams[-1].initial_metadata()
            with failing(errors_pb2.CODE_OVERLOADED) as failed:
                await asyncio.wait_for(stub.Append(metadata=bearing(name)).read(), READY_S)
            assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        open_streams.pop().cancel()
        request = tables_pb2.DescribeTableRequest(name="t")
        again = tables_pb2_grpc.TableServiceStub(channel).DescribeTable
        while await again(request, metadata=bearing("bob")).code() is not grpc.StatusCode.OK:
            pass  # the place is free once the server has noticed
        del open_streams


async def test_of_a_stream_that_nobody_reads_a_window_is_kept(tmp_path: Path) -> None:
    """The message that is said to come is larger, and so is what gRPC would guess that the network takes."""
    async with serving(tmp_path, DoorLimits(calls=1)) as served, served.raw() as connection:
        (read, _refused) = begin_large(connection, "/headgate.api.v1.IngestService/Append", "alice", 2)
        assert read.window + read.sent <= WINDOW_BYTES


async def test_a_connection_too_many_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, DoorLimits(connections=2)) as served, served.raw() as first, served.raw() as second:
        async with served.raw() as third:
            await asyncio.wait_for(third.refused.wait(), READY_S)
        assert not any(each.refused.is_set() for each in (first, second))
