"""What coordinators say of a table, over real gRPC, when a channel to one is closed meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1.tables_pb2_grpc import TableServiceServicer, add_TableServiceServicer_to_server
from headgate_runtime.errors import RpcError
from headgate_writer.refusal import check_identity, find_refusal
from support.scripted_owner import scripted_owner


class Silent(TableServiceServicer):
    """Never answers. ``asked``: set by a call."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def DescribeTable(self, request: Any, context: Any) -> Any:
        self.asked.set()
        await asyncio.Event().wait()


class Renamed(TableServiceServicer):
    """The table that is asked for by its id has another name, and another has its name."""

    async def DescribeTable(self, request: Any, context: Any) -> Any:
        assert (request.name, request.table_uuid) == ("t", "its own")
        error = err.Error(code=err.CODE_TABLE_RENAMED, action=err.ACTION_GIVE_UP, message="and is sales now")
        await context.abort(grpc.StatusCode.NOT_FOUND, "", (("headgate-error-bin", error.SerializeToString()),))


@asynccontextmanager
async def asking() -> AsyncIterator[tuple[grpc.aio.Channel, "asyncio.Task[Any]"]]:
    """A channel, and the question that waits for an answer on it."""
    tables, server = Silent(), grpc.aio.server()
    add_TableServiceServicer_to_server(tables, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            question = asyncio.create_task(find_refusal("t", "", [channel]))
            await tables.asked.wait()
            yield channel, question
    finally:
        await server.stop(0)


async def test_a_channel_that_is_closed_is_no_answer() -> None:
    """The client's stream would end as cancelled, and gRPC would not tell the client."""
    async with asking() as (channel, question):
        await channel.close()
        assert await question is None


async def test_a_client_that_leaves_ends_the_question() -> None:
    async with asking() as (_, question):
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question


async def test_a_producer_is_told_to_come_again_while_no_coordinator_says_whether_its_table_was_dropped() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as nobody:
        for channels in ([], [nobody]):
            with pytest.raises(RpcError) as refused:
                await check_identity("t", "its own", "another", channels)
            assert (refused.value.error.code, refused.value.error.action) == (err.CODE_UNAVAILABLE, err.ACTION_RETRY)
    async with scripted_owner() as owner, grpc.aio.insecure_channel(owner.address) as channel:
        with pytest.raises(RpcError) as refused:
            await check_identity("t", "its own", "another", [channel])
        assert refused.value.error.code == err.CODE_TABLE_DROPPED, "the owner knows no table of the name"


async def test_a_producer_whose_table_was_renamed_hears_that_also_when_another_has_its_name() -> None:
    server = grpc.aio.server()
    add_TableServiceServicer_to_server(Renamed(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(RpcError) as refused:
            await check_identity("t", "its own", "another", [channel])
        unattached = await find_refusal("t", "its own", [channel])
    for error in (refused.value.error, unattached):
        assert error is not None
        assert (error.code, error.message) == (err.CODE_TABLE_RENAMED, "and is sales now")
    await server.stop(0)
