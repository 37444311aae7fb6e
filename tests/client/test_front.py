"""A client behind one front address: everything goes there, whatever addresses the cluster gives."""

import asyncio

import grpc
import pytest

import headgate
from headgate import aio
from headgate.system import System
from headgate_cli.cluster import Access
from headgate_cli.status.gathering import gather
from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import ingest_pb2_grpc, tables_pb2_grpc
from headgate_proto.handshake import DIALLED, FRONT, SERVER, TARGET
from support.scripted_service import Cluster, Ingest, Tables, error
from support.scripted_table import SCHEMA, NoPauses, give_up_silent_writer, ids, rows

WRITER = (SERVER, "writer-0.invalid:7070")


async def add_front(cluster: Cluster) -> str:
    """One address at which everything is served. What writers are called leads nowhere from now on."""

    def add(server: grpc.aio.Server, at: list[str]) -> None:
        tables_pb2_grpc.add_TableServiceServicer_to_server(Tables(cluster), server)
        ingest_pb2_grpc.add_IngestServiceServicer_to_server(Ingest(cluster, at), server)

    cluster.listed = [f"writer-{number}.invalid:7070" for number in range(len(cluster.writers))]
    return await cluster.serve(add)


async def write(hg: aio.Headgate) -> None:
    table = await hg.create_table("t", SCHEMA, key="id", exist_ok=True)
    async with table.channel("c") as channel:
        await channel.upsert(rows(0, 1))


@pytest.mark.parametrize(("option", "said"), [(True, ()), (False, ((FRONT, "1"),))], ids=["by option", "by the cluster's word"])
async def test_rows_go_to_the_front_address_though_writers_have_others(
    option: bool, said: tuple[tuple[str, str], ...], cluster: Cluster
) -> None:
    front = await add_front(cluster)
    cluster.greeting = (WRITER, *said)
    async with aio.connect(front, front=option) as hg:
        await write(hg)
    assert ids(cluster) == [0]
    assert {call[DIALLED] for call in cluster.calls} == {front}
    assert cluster.calls[-1][TARGET] in (cluster.listed or [])


@pytest.mark.slow
async def test_without_that_writers_are_called_at_their_own_addresses(cluster: Cluster) -> None:
    front = await add_front(cluster)
    cluster.greeting = (WRITER,)
    async with aio.connect(front, timeout=1) as hg:
        with pytest.raises(headgate.UnavailableError, match="invalid"):
            await write(hg)


async def test_a_redirect_names_whom_the_call_is_for_and_goes_to_the_front_address(cluster: Cluster) -> None:
    front = await add_front(cluster)
    cluster.knobs.unary = [error(err.CODE_NOT_OWNER, address="coordinator-2.invalid:7070")]
    async with aio.connect(front, front=True) as hg:
        await hg.create_table("t", SCHEMA, key="id")
        await hg.status(coordinator="coordinator-9.invalid:7070")
    targets = [call.get(TARGET) for call in cluster.calls]
    assert targets == [None, "coordinator-2.invalid:7070", "coordinator-9.invalid:7070"]


async def test_a_coordinator_for_which_another_one_answers_is_silent(cluster: Cluster) -> None:
    """That one gets the call when the other is gone."""
    front = await add_front(cluster)
    cluster.others = [("two", "coordinator-2.invalid:7070")]
    found = await asyncio.to_thread(gather, Access([front], timeout=30, front=True))
    assert {each["name"]: each["answers"] for each in found["coordinators"]} == {"one": True, "two": False}
    assert cluster.calls[-1][TARGET] == "coordinator-2.invalid:7070"


async def test_of_several_front_addresses_one_that_answers_is_taken(cluster: Cluster) -> None:
    front = await add_front(cluster)
    cluster.greeting = (WRITER,)
    async with aio.connect(["127.0.0.1:1", front], front=True) as hg:
        await write(hg)
    assert ids(cluster) == [0]


@pytest.mark.slow
async def test_a_silent_writer_behind_it_is_left_when_the_cluster_gave_it_up_and_not_before(cluster: Cluster) -> None:
    """It is known by the name that it said: its address is that of all, and the proxy need not take the one that was named."""
    world = NoPauses()
    front = await add_front(cluster)
    cluster.greeting = (WRITER,)
    cluster.listed = ["writer-1.invalid:7070"]
    async with aio.connect(front, front=True, system=System(world, world)) as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        async with table.channel("c") as channel:
            await channel.upsert(rows(0, 1))
            await channel.flush()
            cluster.listed = [WRITER[1], "writer-1.invalid:7070"]
            cluster.knobs.hang = 1
            await channel.upsert(rows(1, 2))
            await give_up_silent_writer(cluster, world, ["writer-1.invalid:7070"])
            await channel.flush()
    assert ids(cluster) == [0, 1]


async def test_a_stream_of_which_nothing_is_heard_is_opened_again(cluster: Cluster) -> None:
    world = NoPauses()
    world.look.set()
    front = await add_front(cluster)
    cluster.greeting = (WRITER,)
    cluster.knobs.mute = 1  # a proxy has a connection to a machine that has just vanished
    async with aio.connect(front, front=True, system=System(world, world), timeout=120) as hg:
        await write(hg)
    assert ids(cluster) == [0]
    assert world.looks < 100
